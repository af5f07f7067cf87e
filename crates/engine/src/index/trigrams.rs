//! Trigrams of a text: every sequence of three bytes within a line, with ASCII letters in lower case. The same set
//! serves case-sensitive and case-insensitive searches.

/// Three bytes, the first one in the highest position.
pub type Trigram = u32;

/// Number of possible trigrams.
const TRIGRAM_COUNT: usize = 1 << 24;
const WORD_BITS: usize = 64;

/// Extracts the distinct trigrams of one text after another.
pub struct TrigramExtractor {
    /// One bit for each trigram of the current text.
    seen: Vec<u64>,
    found: Vec<Trigram>,
}

impl Default for TrigramExtractor {
    fn default() -> Self {
        Self { seen: vec![0; TRIGRAM_COUNT / WORD_BITS], found: Vec::new() }
    }
}

impl TrigramExtractor {
    /// The distinct trigrams of a text, in order of first occurrence.
    pub fn extract(&mut self, text: &str) -> &[Trigram] {
        for gram in self.found.drain(..) {
            self.seen[gram as usize / WORD_BITS] = 0;
        }
        let (seen, found) = (&mut self.seen, &mut self.found);
        for_each_trigram(text.as_bytes(), |gram| {
            let (word, bit) = (gram as usize / WORD_BITS, 1_u64 << (gram as usize % WORD_BITS));
            if seen[word] & bit == 0 {
                seen[word] |= bit;
                found.push(gram);
            }
        });
        &self.found
    }
}

/// Calls `gram` for every trigram of these bytes, including repetitions.
pub(super) fn for_each_trigram(bytes: &[u8], mut gram: impl FnMut(Trigram)) {
    let (mut run, mut length) = (0_u32, 0_u8);
    for byte in bytes {
        if *byte == b'\n' {
            length = 0;
            continue;
        }
        run = (run << 8 | u32::from(byte.to_ascii_lowercase())) & 0xff_ffff;
        length = (length + 1).min(3);
        if length == 3 {
            gram(run);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trigrams_as_text(text: &str) -> Vec<String> {
        let mut grams = TrigramExtractor::default();
        // The trigrams of an earlier text must not remain.
        grams.extract("abcdef unrelated\n");
        let show = |gram: &Trigram| String::from_utf8_lossy(&gram.to_be_bytes()[1..]).into_owned();
        grams.extract(text).iter().map(show).collect()
    }

    #[test]
    fn trigrams_are_distinct_and_do_not_cross_lines() {
        assert_eq!(trigrams_as_text("aBcab\ncabc\r\n\nab"), ["abc", "bca", "cab", "bc\r"]);
        assert_eq!(trigrams_as_text("ab"), Vec::<String>::new());
        assert_eq!(trigrams_as_text("é1"), ["é1"]);
    }
}
