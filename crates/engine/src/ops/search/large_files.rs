//! Searches files too large for memory as a stream, with bounded memory and time. For a dialect with its own size
//! limit they are only counted.

use stead_path::RelPath;
use stead_text::encoding::Encoding;

use super::{
    SearchContext, SearchResults, SearchedFile,
    incomplete::IncompleteReason,
    large_file_reader::{self, LargeFileEnd, LargeFileLimits, LargeFileReader},
    matcher::TextMatches,
};
use crate::{call_options::BeforeAfterInclusion, errors::Error, limits, workspace::FileReader};

/// The result of one pass over a file.
enum LargeFilePassResult {
    Searched(TextMatches, u64),
    /// Repeat with this encoding.
    RetryWith(Encoding),
    NotText,
    Stopped(IncompleteReason),
    Unreadable,
}

impl SearchContext<'_> {
    /// Searches a large file, or records why not.
    pub(super) fn search_large(
        &self,
        found: &mut SearchResults,
        source: &SearchedFile<'_, '_, '_>,
    ) -> Result<(), Error> {
        let path = source.path();
        if self.context.options.before_after == BeforeAfterInclusion::Include {
            found.incomplete.add(path, IncompleteReason::FileTooLarge);
            return Ok(());
        }
        match self.search_large_file(path, source)? {
            LargeFilePassResult::Searched(matched, bytes) => {
                found.files_searched += 1;
                found.bytes_searched += bytes;
                self.add_matches(found, path, matched);
            }
            LargeFilePassResult::NotText | LargeFilePassResult::RetryWith(_) => found.binary_files += 1,
            LargeFilePassResult::Stopped(why) => found.incomplete.add(path, why),
            LargeFilePassResult::Unreadable => found.unreadable_files += 1,
        }
        Ok(())
    }

    fn search_large_file(
        &self,
        path: &RelPath,
        source: &SearchedFile<'_, '_, '_>,
    ) -> Result<LargeFilePassResult, Error> {
        let Ok(pieces) = source.open_file(self.context) else { return Ok(LargeFilePassResult::Unreadable) };
        let pieces = &*pieces;
        if pieces.size() > limits::SEARCH_LARGE_BYTES_MAX {
            return Ok(LargeFilePassResult::Stopped(IncompleteReason::FileTooLarge));
        }
        let encoding = match large_file_reader::detect_encoding(pieces) {
            Ok(Some(encoding)) => encoding,
            Ok(None) => return Ok(LargeFilePassResult::NotText),
            Err(_) => return Ok(LargeFilePassResult::Unreadable),
        };
        match self.search_with_encoding(path, pieces, encoding)? {
            LargeFilePassResult::RetryWith(other) => self.search_with_encoding(path, pieces, other),
            way @ (LargeFilePassResult::Searched(..)
            | LargeFilePassResult::NotText
            | LargeFilePassResult::Stopped(_)
            | LargeFilePassResult::Unreadable) => Ok(way),
        }
    }

    /// One pass over a file in one encoding.
    fn search_with_encoding(
        &self,
        path: &RelPath,
        pieces: &dyn FileReader,
        encoding: Encoding,
    ) -> Result<LargeFilePassResult, Error> {
        let control = self.context.control;
        let bounds = LargeFileLimits { control, deadline: self.large_file_deadline };
        let ranker = self.ranker(path);
        let mut take = self.hit_limits(ranker.as_ref());
        loop {
            let mut reader = LargeFileReader::new(pieces, encoding, bounds);
            let matched = self.pattern.find_hits_in_stream(&mut reader, take, control);
            // The call may have been cancelled during the match.
            control.check()?;
            let bytes = reader.bytes_read();
            if let Some(LargeFileEnd::NotText(at)) = reader.stop_reason() {
                let other = reader.detect_other_encoding(*at).unwrap_or(None);
                return Ok(other.map_or(LargeFilePassResult::NotText, LargeFilePassResult::RetryWith));
            }
            return match (matched, reader.into_end()) {
                (Some(matched), LargeFileEnd::Complete) => Ok(LargeFilePassResult::Searched(matched, bytes)),
                (Some(matched), LargeFileEnd::LinesCut) => {
                    Ok(LargeFilePassResult::Searched(TextMatches { skipped_long_lines: true, ..matched }, bytes))
                }
                (_, LargeFileEnd::Stopped(why)) => Ok(LargeFilePassResult::Stopped(why)),
                (_, LargeFileEnd::NotText(_)) => Ok(LargeFilePassResult::NotText),
                (_, LargeFileEnd::Failed(error)) if large_file_reader::is_file_error(&error) => {
                    Ok(LargeFilePassResult::Unreadable)
                }
                (_, LargeFileEnd::Failed(error)) => Err(error),
                // The context lines do not fit the buffer: search again without context.
                (None, LargeFileEnd::Complete | LargeFileEnd::LinesCut) if take.context_lines > 0 => {
                    take.context_lines = 0;
                    continue;
                }
                (None, LargeFileEnd::Complete | LargeFileEnd::LinesCut) => {
                    Ok(LargeFilePassResult::Stopped(IncompleteReason::LineTooLong))
                }
            };
        }
    }
}
