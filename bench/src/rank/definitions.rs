//! Definitions in a directory according to universal-ctags.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
    process::Command,
};

use stead_text::rank::SearchRankFileCategory;

use super::packages::BenchPackageSourceFile;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RankBenchDefinitionLevel {
    /// The definition of a function, method, type, constant, macro or module.
    TopLevel,
    /// The definition of a field, property or enum value, which looks like a usage.
    Member,
}

#[derive(Debug)]
pub(super) struct RankBenchDefinedName {
    pub(super) name: String,
    pub(super) sort: RankBenchDefinitionLevel,
    pub(super) locations: Vec<(String, u64)>,
}

/// The ctags kinds that define no searchable name, such as `impl` blocks, local names and imports.
const NON_DEFINITION_KINDS: &[&str] =
    &["implementation", "local", "parameter", "unknown", "package", "packageName", "label", "anchor"];
const MEMBER_KINDS: &[&str] = &["field", "property", "enumerator", "variable"];
/// The ctags kind that means a method in Python and a field in other languages.
const MEMBER_KIND: &str = "member";
/// Languages in which ctags also lists names that are no definitions, such as names in import and export lines.
const SCRIPT_LANGUAGES: &[&str] = &["JavaScript", "TypeScript"];
const IMPORT_EXPORT_PREFIXES: &[&str] =
    &["import ", "import{", "export {", "export{", "export type {", "export default "];
const RESERVED_WORDS: &[&str] = &["class", "default", "delete", "export", "from", "import", "new"];
const DEFAULT_EXPORT_WORDS: &[&str] = &["function", "async", "class", "abstract", "interface"];
const LANGUAGES: &str = "Rust,Python,JavaScript,TypeScript,Go,C,C++,Java,Ruby,PHP,Sh";
/// Names with fewer bytes than this are not measured, because they occur everywhere.
const NAME_BYTES_MIN: usize = 3;

impl RankBenchDefinedName {
    pub(super) fn is_in_tests(&self) -> bool {
        self.locations.iter().any(|(path, _)| SearchRankFileCategory::from_path(path) == SearchRankFileCategory::Test)
    }
}

/// The names defined below a directory, sorted.
pub(super) fn defined_names(
    directory: &Path,
    sources: &[BenchPackageSourceFile],
) -> Result<Vec<RankBenchDefinedName>, String> {
    let output = Command::new("ctags")
        .current_dir(directory)
        .args(["-R", "--links=no", "-x", "--_xformat=%N\t%F\t%n\t%K\t%l"])
        .arg(format!("--languages={LANGUAGES}"))
        // Extensions that older versions of ctags do not know.
        .args(["--map-JavaScript=+.mjs", "--map-JavaScript=+.cjs"])
        .args(["--map-TypeScript=+.mts", "--map-TypeScript=+.cts", "--map-TypeScript=+.tsx"])
        .arg(".")
        .output()
        .map_err(|error| format!("ctags: {error}"))?;
    if !output.status.success() {
        return Err(format!("ctags: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let texts: HashMap<&str, Vec<&str>> =
        sources.iter().map(|source| (source.path.as_str(), source.text.lines().collect())).collect();
    let line = |path: &str, number: u64| -> &str {
        let at = usize::try_from(number).unwrap_or_default().saturating_sub(1);
        texts.get(path).and_then(|lines| lines.get(at)).copied().unwrap_or_default()
    };
    Ok(parse_tags(&String::from_utf8_lossy(&output.stdout), &line))
}

fn parse_tags<'a>(listed: &str, line_at: &dyn Fn(&str, u64) -> &'a str) -> Vec<RankBenchDefinedName> {
    let mut names: BTreeMap<String, (RankBenchDefinitionLevel, Vec<(String, u64)>)> = BTreeMap::new();
    for line in listed.lines() {
        let parts: Vec<&str> = line.split('\t').collect();
        let [name, path, number, kind, language] = parts[..] else { continue };
        let Ok(number) = number.parse() else { continue };
        let path = path.trim_start_matches("./");
        let plain = |letter: char| letter.is_alphanumeric() || letter == '_';
        // Names invented by ctags contain characters that identifiers do not have.
        let made_up = !name.chars().all(plain) || name.starts_with("__anon") || name.starts_with("Anonymous");
        if name.len() < NAME_BYTES_MIN || made_up {
            continue;
        }
        if SCRIPT_LANGUAGES.contains(&language) && RESERVED_WORDS.contains(&name) {
            continue;
        }
        let Some(sort) = definition_sort(kind, language, line_at(path, number)) else { continue };
        let (known, places) = names.entry(name.to_owned()).or_insert((sort, Vec::new()));
        // A name of both sorts counts as the harder one.
        *known = sort.max(*known);
        let place = (path.to_owned(), number);
        if !places.contains(&place) {
            places.push(place);
        }
    }
    names.into_iter().map(|(name, (sort, places))| RankBenchDefinedName { name, sort, locations: places }).collect()
}

/// Whether a definition that ctags lists is top-level or a member; `None` if it is not measured.
fn definition_sort(kind: &str, language: &str, line: &str) -> Option<RankBenchDefinitionLevel> {
    let script = SCRIPT_LANGUAGES.contains(&language);
    let value = script && matches!(kind, "constant" | "variable");
    if NON_DEFINITION_KINDS.contains(&kind)
        || (script && is_import_or_export(line))
        || (value && (line.contains("require(") || line.contains("import ")))
    {
        return None;
    }
    let inner = value && line.starts_with([' ', '\t']);
    let member = MEMBER_KINDS.contains(&kind) || (kind == MEMBER_KIND && language != "Python");
    Some(if member || inner { RankBenchDefinitionLevel::Member } else { RankBenchDefinitionLevel::TopLevel })
}

/// Whether a line only imports or re-exports a definition.
fn is_import_or_export(line: &str) -> bool {
    let line = line.trim_start();
    let defines = line
        .strip_prefix("export default ")
        .is_some_and(|rest| DEFAULT_EXPORT_WORDS.iter().any(|word| rest.starts_with(word)));
    !defines && IMPORT_EXPORT_PREFIXES.iter().any(|start| line.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ctags_listing_is_parsed() {
        let listed = "run\t./a.rs\t3\tfunction\tRust\nrun\t./b.rs\t1\tmethod\tRust\n\
                      run\t./b.rs\t9\timplementation\tRust\npath\ta.rs\t4\tfield\tRust\n\
                      __anon1\ta.c\t1\tstruct\tC\nx\ta.rs\t1\tfunction\tRust\nbroken\n";
        let read = parse_tags(listed, &|_, _| "");
        let names: Vec<(&str, RankBenchDefinitionLevel, usize)> =
            read.iter().map(|name| (name.name.as_str(), name.sort, name.locations.len())).collect();
        assert_eq!(
            names,
            [("path", RankBenchDefinitionLevel::Member, 1), ("run", RankBenchDefinitionLevel::TopLevel, 2)]
        );
        assert_eq!(read[1].locations[0], ("a.rs".to_owned(), 3));
    }

    #[test]
    fn imported_names_are_not_definitions() {
        for (kind, language, line, expected) in [
            ("constant", "JavaScript", "const a = require('a');", None),
            ("constant", "JavaScript", "  const a = 1;", Some(RankBenchDefinitionLevel::Member)),
            ("constant", "JavaScript", "const a = 1;", Some(RankBenchDefinitionLevel::TopLevel)),
            ("alias", "TypeScript", "export { type a } from './a';", None),
            ("class", "TypeScript", "export default class a {", Some(RankBenchDefinitionLevel::TopLevel)),
            ("variable", "TypeScript", "export default a", None),
            ("member", "Python", "    def a(self):", Some(RankBenchDefinitionLevel::TopLevel)),
            ("member", "C", "  int a;", Some(RankBenchDefinitionLevel::Member)),
            ("implementation", "Rust", "impl A {", None),
        ] {
            assert_eq!(definition_sort(kind, language, line), expected, "{line}");
        }
    }
}
