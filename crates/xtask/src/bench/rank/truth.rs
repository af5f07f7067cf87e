//! What universal-ctags says is defined in a directory.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
    process::Command,
};

use text::rank::Standing;

use super::packages::Source;

/// Whether a name is defined by itself or as a part of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sort {
    /// Functions, methods, types, constants, macros, modules.
    Outer,
    /// Fields, properties, values of an enumeration: their lines have the shape of their uses.
    Member,
}

/// A name and where it is defined.
#[derive(Debug)]
pub(super) struct Defined {
    pub(super) name: String,
    pub(super) sort: Sort,
    pub(super) places: Vec<(String, u64)>,
}

/// What ctags lists but does not define a name: blocks that belong to one, names inside a function, names of imports.
const NOT_DEFINED: &[&str] =
    &["implementation", "local", "parameter", "unknown", "package", "packageName", "label", "anchor"];
const MEMBERS: &[&str] = &["field", "property", "enumerator", "variable"];
/// What ctags calls a method in Python and a field elsewhere.
const MEMBER: &str = "member";
/// Where it lists constants of functions with those of modules, those that only name what is required, and words of
/// the language itself in lines that bring in or give away: `type`, `from`, `default`.
const SCRIPTS: &[&str] = &["JavaScript", "TypeScript"];
const BRINGS_OR_GIVES: &[&str] =
    &["import ", "import{", "export {", "export{", "export type {", "export default "];
const WORDS: &[&str] = &["class", "default", "delete", "export", "from", "import", "new"];
const DEFAULTS: &[&str] = &["function", "async", "class", "abstract", "interface"];
/// Languages whose definitions are asked for.
const LANGUAGES: &str = "Rust,Python,JavaScript,TypeScript,Go,C,C++,Java,Ruby,PHP,Sh";
/// Shorter names are found everywhere.
const NAME_BYTES_MIN: usize = 3;

impl Defined {
    pub(super) fn is_in_tests(&self) -> bool {
        self.places.iter().any(|(path, _)| Standing::of(path) == Standing::Test)
    }
}

/// Every name that is defined below a directory, in order of the names.
pub(super) fn of(directory: &Path, sources: &[Source]) -> Result<Vec<Defined>, String> {
    let output = Command::new("ctags")
        .current_dir(directory)
        .args(["-R", "--links=no", "-x", "--_xformat=%N\t%F\t%n\t%K\t%l"])
        .arg(format!("--languages={LANGUAGES}"))
        // Endings that are younger than the ctags of most systems.
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
    Ok(read(&String::from_utf8_lossy(&output.stdout), &line))
}

fn read<'a>(listed: &str, line_at: &dyn Fn(&str, u64) -> &'a str) -> Vec<Defined> {
    let mut names: BTreeMap<String, (Sort, Vec<(String, u64)>)> = BTreeMap::new();
    for line in listed.lines() {
        let parts: Vec<&str> = line.split('\t').collect();
        let [name, path, number, kind, language] = parts[..] else { continue };
        let Ok(number) = number.parse() else { continue };
        let path = path.trim_start_matches("./");
        let plain = |letter: char| letter.is_alphanumeric() || letter == '_';
        // Names that ctags makes up have signs no identifier has.
        let made_up = !name.chars().all(plain) || name.starts_with("__anon") || name.starts_with("Anonymous");
        if name.len() < NAME_BYTES_MIN || made_up {
            continue;
        }
        if SCRIPTS.contains(&language) && WORDS.contains(&name) {
            continue;
        }
        let Some(sort) = sort(kind, language, line_at(path, number)) else { continue };
        let (known, places) = names.entry(name.to_owned()).or_insert((sort, Vec::new()));
        // A name that is both counts as what is harder to tell.
        *known = sort.max(*known);
        let place = (path.to_owned(), number);
        if !places.contains(&place) {
            places.push(place);
        }
    }
    names.into_iter().map(|(name, (sort, places))| Defined { name, sort, places }).collect()
}

/// What kind of definition a line is; nothing when it defines nothing that can be asked for.
fn sort(kind: &str, language: &str, line: &str) -> Option<Sort> {
    let script = SCRIPTS.contains(&language);
    let value = script && matches!(kind, "constant" | "variable");
    if NOT_DEFINED.contains(&kind)
        || (script && names_only(line))
        || (value && (line.contains("require(") || line.contains("import ")))
    {
        return None;
    }
    let inner = value && line.starts_with([' ', '\t']);
    let member = MEMBERS.contains(&kind) || (kind == MEMBER && language != "Python");
    Some(if member || inner { Sort::Member } else { Sort::Outer })
}

/// Whether a line only brings in or gives away what is defined elsewhere.
fn names_only(line: &str) -> bool {
    let line = line.trim_start();
    let defines = line
        .strip_prefix("export default ")
        .is_some_and(|rest| DEFAULTS.iter().any(|word| rest.starts_with(word)));
    !defines && BRINGS_OR_GIVES.iter().any(|start| line.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_is_read() {
        let listed = "run\t./a.rs\t3\tfunction\tRust\nrun\t./b.rs\t1\tmethod\tRust\n\
                      run\t./b.rs\t9\timplementation\tRust\npath\ta.rs\t4\tfield\tRust\n\
                      __anon1\ta.c\t1\tstruct\tC\nx\ta.rs\t1\tfunction\tRust\nbroken\n";
        let read = read(listed, &|_, _| "");
        let names: Vec<(&str, Sort, usize)> =
            read.iter().map(|name| (name.name.as_str(), name.sort, name.places.len())).collect();
        assert_eq!(names, [("path", Sort::Member, 1), ("run", Sort::Outer, 2)]);
        assert_eq!(read[1].places[0], ("a.rs".to_owned(), 3));
    }

    #[test]
    fn what_is_brought_in_is_not_defined() {
        for (kind, language, line, expected) in [
            ("constant", "JavaScript", "const a = require('a');", None),
            ("constant", "JavaScript", "  const a = 1;", Some(Sort::Member)),
            ("constant", "JavaScript", "const a = 1;", Some(Sort::Outer)),
            ("alias", "TypeScript", "export { type a } from './a';", None),
            ("class", "TypeScript", "export default class a {", Some(Sort::Outer)),
            ("variable", "TypeScript", "export default a", None),
            ("member", "Python", "    def a(self):", Some(Sort::Outer)),
            ("member", "C", "  int a;", Some(Sort::Member)),
            ("implementation", "Rust", "impl A {", None),
        ] {
            assert_eq!(sort(kind, language, line), expected, "{line}");
        }
    }
}
