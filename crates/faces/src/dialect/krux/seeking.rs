//! Finding by name and searching in files. Ignore files are not obeyed, as the document knows none; hidden names are left
//! out unless they are asked for.

use engine::{Answer, Evidence, Failure, Filter, Globs, Listing, Ranking, Terms, limits};
use serde_json::{Map, Value, json};

use super::{super::Request, Scene, files, object, spot, tool::Seek};

/// Results when nothing is said.
const RESULTS_DEFAULT: usize = 100;
/// Lines around a result when nothing is said.
const CONTEXT_DEFAULT: u64 = 2;
/// Names that start with a dot, and what is below them.
const HIDDEN: &[&str] = &["**/.*", "**/.*/**"];

/// The engine's call.
pub(super) fn request(scene: &Scene<'_>, seek: Seek, terms: Terms) -> Result<Request, Failure> {
    let asked = &scene.asked;
    let path = spot::whole("path", asked.text("path"))?;
    let exclude = if asked.is_set("include_hidden") { &[][..] } else { HIDDEN };
    let filter = Filter { include: Globs::default(), exclude: Globs::new(exclude.iter().copied())? };
    let (operation, arguments, terms) = match seek {
        Seek::Names => {
            let pattern = asked.text("pattern");
            let pattern = if pattern.contains('/') { pattern.to_owned() } else { format!("**/{pattern}") };
            let max = wanted(scene, limits::FIND_MATCHES_MAX).max(1);
            let arguments = json!({ "path": path, "pattern": pattern, "all": true, "max": max });
            ("find", arguments, Terms { listing: Listing::Entries(max), filter, ..terms })
        }
        Seek::Contents => {
            let context = asked.number("context_lines").unwrap_or(CONTEXT_DEFAULT);
            let max = if asked.is_set("files_only") {
                limits::SEARCH_HITS_MAX
            } else {
                wanted(scene, limits::SEARCH_HITS_MAX).max(1)
            };
            let mut arguments = json!({
                "query": asked.text("pattern"),
                "path": path,
                "regex": asked.is_set("regex"),
                "ignore_case": asked.is_unset("case_sensitive"),
                "context": context.min(limits::SEARCH_CONTEXT_MAX as u64),
                "all": true,
                "max": max,
            });
            if let Some(glob) = asked.maybe("include_glob") {
                arguments["glob"] = glob.into();
            }
            let (evidence, ranking) = (Evidence::Bytes, Ranking::ByMeaning);
            ("search", arguments, Terms { filter, evidence, ranking, ..terms })
        }
    };
    Ok(Request { operation: operation.to_owned(), arguments: object(arguments), terms })
}

/// How many results are wanted, within what one answer carries.
fn wanted(scene: &Scene<'_>, most: usize) -> usize {
    let asked = scene.asked.number("max_results").map(usize::try_from);
    asked.map_or(RESULTS_DEFAULT, |asked| asked.unwrap_or(most)).min(most)
}

/// What it answers.
pub(super) fn told(scene: &Scene<'_>, seek: Seek, answer: &Answer) -> Value {
    let total = answer.json.get("total").and_then(Value::as_u64).unwrap_or_default();
    let cut = answer.json.get("truncated") == Some(&Value::Bool(true));
    let found = |name: &str| answer.json.get(name).and_then(Value::as_array).into_iter().flatten();
    match seek {
        Seek::Names => {
            let most = wanted(scene, limits::FIND_MATCHES_MAX);
            let matches: Vec<Value> = found("matches").take(most).map(|one| matched(scene, one)).collect();
            let truncated = cut || (matches.len() as u64) < total;
            json!({ "matches": matches, "total_matches": total, "truncated": truncated })
        }
        Seek::Contents => {
            let most = wanted(scene, limits::SEARCH_HITS_MAX);
            let results: Vec<Value> = if scene.asked.is_set("files_only") {
                by_file(scene, found("hits")).into_iter().take(most).collect()
            } else {
                found("hits").take(most).map(|hit| result(scene, hit)).collect()
            };
            let fewer = !scene.asked.is_set("files_only") && (results.len() as u64) < total;
            json!({
                "results": results,
                "total_matches": total,
                "files_searched": answer.json.get("scanned"),
                "truncated": cut || fewer,
            })
        }
    }
}

fn absolute(scene: &Scene<'_>, found: &Value) -> String {
    scene.krux.spots.absolute(found["path"].as_str().unwrap_or("."))
}

fn matched(scene: &Scene<'_>, found: &Value) -> Value {
    json!({
        "path": absolute(scene, found),
        "type": files::kind(&found["type"]),
        "size": found["size"],
        "modified": found["modified"],
    })
}

fn result(scene: &Scene<'_>, hit: &Value) -> Value {
    json!({
        "path": absolute(scene, hit),
        "line": hit["line"],
        "column": hit["column"],
        "match": hit["text"],
        "context_before": hit["before"],
        "context_after": hit["after"],
        "score": hit["points"],
    })
}

/// Files in the order of their best line, with how many lines each has.
fn by_file<'a>(scene: &Scene<'_>, hits: impl Iterator<Item = &'a Value>) -> Vec<Value> {
    let mut counts: Map<String, Value> = Map::new();
    for hit in hits {
        let count = counts.entry(absolute(scene, hit)).or_insert(Value::from(0));
        *count = Value::from(count.as_u64().unwrap_or_default() + 1);
    }
    counts.into_iter().map(|(path, count)| json!({ "path": path, "match_count": count })).collect()
}
