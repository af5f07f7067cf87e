//! The native `search`: a verdict, the hits by what they are, the way to the next ones; and when there are none, what
//! comes nearest and how it was read.

use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use text::visible::visible_line;

use super::{
    Found, Look, Search, Source, in_time,
    nearest::{self, Reading},
    page::{Page, Wanted, by_role, by_words, defined, page},
};
use crate::{
    failure::{Failure, Kind},
    limits,
    operation::{Planned, Target},
    ops::{
        answer::Facts,
        seek::{self, Names, Unseen},
    },
    plan::Top,
    view::View,
};

/// Searches and answers.
pub(super) fn answer(
    search: &Search,
    look: &Look<'_>,
    target: &Target,
    hits_max: usize,
) -> Result<Planned, Failure> {
    let wanted = wanted(search, hits_max)?;
    let started = Instant::now();
    let (mut found, unseen) = search.gather(look, target)?;
    if found.total == 0 {
        return nothing(search, look, target, (&found, unseen), started.elapsed());
    }
    if search.context.is_none() && wanted.start == 0 {
        widen(look, &mut found)?;
    }
    let order = by_role(&found.files);
    let page = page(&found.files, &order, wanted);
    let lost = found.total - order.len();
    let mut text = verdict(search, &found, wanted);
    text.push_str(&page.text);
    if let Some(next) = page.next {
        text.push_str(&format!("[{} more: cursor \"{next}\"]\n", found.total - next));
    } else if lost > 0 {
        text.push_str(&format!("[{lost} more are not kept: name a smaller path or a glob]\n"));
    }
    text.push_str(&notes(&found, unseen));
    let truncated = unseen.cut || page.next.is_some() || lost > 0;
    let next = page.next.map(|next| Value::Object(call(search, next)));
    let facts = Facts::new()
        .with("path", target.path.to_string())
        .with("files", page.files)
        .with("total", found.total)
        .extended(counts(&found, unseen))
        .with("truncated", truncated)
        .maybe("next", next);
    Ok(Planned::Read { answer: facts.answer(text.trim_end()), bytes: found.bytes })
}

/// How much is wanted, from the arguments.
fn wanted(search: &Search, hits_max: usize) -> Result<Wanted, Failure> {
    let bad = |detail: String, hint: &str| Failure::new(Kind::BadRequest, detail).hint(hint);
    let start = match search.cursor.as_deref().map(str::parse) {
        None => 0,
        Some(Ok(start)) => start,
        Some(Err(_)) => {
            return Err(bad("the cursor cannot be read".to_owned(), "pass the cursor of the last answer"));
        }
    };
    let budget_chars = match search.budget.map(usize::try_from) {
        None => limits::SEARCH_BUDGET_CHARS_DEFAULT,
        Some(Ok(budget)) if (1..=limits::PAGE_CHARS).contains(&budget) => budget,
        Some(_) => {
            let detail = format!("budget is 1 to {} characters", limits::PAGE_CHARS);
            return Err(bad(detail, "go on with the cursor of the answer instead"));
        }
    };
    Ok(Wanted { start, hits_max, budget_chars })
}

/// Shows few hits with the lines around them.
fn widen(look: &Look<'_>, found: &mut Found) -> Result<(), Failure> {
    let Some((_, context)) = limits::SEARCH_FEW.iter().find(|(most, _)| found.total <= *most) else {
        return Ok(());
    };
    let wide = Look { context: *context, until: in_time(look.view, 2), ..*look };
    let mut again = Found::default();
    for (path, _) in &found.files {
        wide.at_file(&mut again, &Source::Known(path))?;
    }
    // Somebody may have changed the files meanwhile; what was found first stays.
    if again.total == found.total && again.files.len() == found.files.len() {
        found.files = again.files;
    }
    Ok(())
}

/// The first line of the answer.
fn verdict(search: &Search, found: &Found, wanted: Wanted) -> String {
    let (total, files) = (found.total, found.holding);
    if wanted.start > 0 {
        return format!(
            "{}: from hit {} of {total}\n",
            visible_line(&search.query.shown()),
            wanted.start + 1
        );
    }
    let defined = defined(&found.files).map(|count| format!(", {count}")).unwrap_or_default();
    format!("{}{defined}\n", hits_in(total, files))
}

/// How many hits in how many files.
fn hits_in(total: usize, files: usize) -> String {
    let plural = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    format!("{} in {}", plural(total, "hit"), plural(files, "file"))
}

/// The arguments of the next page.
fn call(search: &Search, cursor: usize) -> Map<String, Value> {
    let arguments = match serde_json::to_value(search) {
        Ok(Value::Object(arguments)) => arguments,
        Ok(_) | Err(_) => Map::new(),
    };
    let mut arguments: Map<String, Value> =
        arguments.into_iter().filter(|(_, value)| !value.is_null()).collect();
    arguments.insert("cursor".to_owned(), cursor.to_string().into());
    arguments
}

/// What was and was not looked into, for machines.
fn counts(found: &Found, unseen: Unseen) -> Map<String, Value> {
    let some = |count: u64| (count > 0).then_some(count);
    Facts::new()
        .with("scanned", found.scanned)
        .maybe("binary", some(found.binary))
        .maybe("large", some(found.left.count()))
        .maybe("left", found.left.named())
        .maybe("unreadable", some(found.unreadable))
        .maybe("ignored", unseen.ignored())
        .object()
}

/// The same for models: what was not looked into.
fn notes(found: &Found, unseen: Unseen) -> String {
    let counts = [(found.binary, "not text"), (found.unreadable, "not readable")];
    let mut notes: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    notes.extend(found.left.note());
    notes.extend(unseen.ignored().map(|_| match found.total {
        0 => unseen.note().trim_start_matches("; ").to_owned(),
        _ => format!("{} ignored", unseen.ignored),
    }));
    if notes.is_empty() { String::new() } else { format!("[{}]\n", notes.join("; ")) }
}

/// What comes nearest when nothing was found.
fn nothing(
    search: &Search,
    look: &Look<'_>,
    target: &Target,
    (found, unseen): (&Found, Unseen),
    took: Duration,
) -> Result<Planned, Failure> {
    let queries = search.query.texts(look.view)?;
    let query = search.query.shown();
    let mut text = format!("nothing holds {}; {} files looked into", visible_line(&query), found.scanned);
    let mut bytes = found.bytes;
    let mut tried: Vec<&str> = Vec::new();
    let mut nearest = None;
    for (reading, pattern) in nearest::readings(&queries, search.manner()) {
        if !is_time_for(look.view, took) {
            text.push_str("; no time to read it otherwise");
            break;
        }
        let other_look = Look { pattern: &pattern, until: in_time(look.view, 2), ..*look };
        let (other, _) = search.gather(&other_look, target)?;
        bytes += other.bytes;
        if other.total > 0 {
            nearest = Some((reading, other));
            break;
        }
        tried.push(reading.name());
    }
    if !tried.is_empty() {
        text.push_str(&format!("; nor {}", tried.join(", nor ")));
    }
    let mut facts = Facts::new()
        .with("path", target.path.to_string())
        .with("files", Vec::<Value>::new())
        .with("total", 0)
        .extended(counts(found, unseen))
        .with("truncated", unseen.cut);
    if let Some((reading, other)) = nearest {
        let (how, page) = (reading.name(), near_page(&queries, reading, &other));
        text.push_str(&format!("\nnearest, {how}: {}\n{}", hits_in(other.total, other.holding), page.text));
        let near = Facts::new().with("read", how).with("total", other.total).with("files", page.files);
        facts = facts.with("nearest", near.object());
    }
    let names = if is_time_for(look.view, took) { names_like(search, look, target)? } else { Vec::new() };
    if !names.is_empty() {
        let shown: Vec<String> = names.iter().map(|name| visible_line(name).into_owned()).collect();
        text = format!("{}\nfiles named like it: {}", text.trim_end(), shown.join(", "));
        facts = facts.with("names", names);
    }
    let text = format!("{}\n{}", text.trim_end(), notes(found, unseen));
    Ok(Planned::Read { answer: facts.answer(text.trim_end()), bytes })
}

/// Whether there is time for another look of this length: an answer without it is better than none.
fn is_time_for(view: &View<'_>, took: Duration) -> bool {
    view.control.deadline().saturating_duration_since(Instant::now()) > took.saturating_mul(2)
}

fn near_page(queries: &[&str], reading: Reading, other: &Found) -> Page {
    let order = match reading {
        Reading::Words => by_words(&other.files, &nearest::words(queries), other.scanned),
        Reading::Parts | Reading::AnyCase | Reading::Expression | Reading::Text | Reading::Spelling => {
            by_role(&other.files)
        }
    };
    let wanted = Wanted {
        start: 0,
        hits_max: limits::SEARCH_NEAREST_MAX,
        budget_chars: limits::SEARCH_BUDGET_CHARS_DEFAULT / 2,
    };
    page(&other.files, &order, wanted)
}

/// Files whose names are like the query.
fn names_like(search: &Search, look: &Look<'_>, target: &Target) -> Result<Vec<String>, Failure> {
    if target.node.is_some_and(|node| node.top == Top::File) {
        return Ok(Vec::new());
    }
    let queries = search.query.texts(look.view)?;
    let make: &(dyn Fn() -> Vec<String> + Sync) = &Vec::new;
    let (found, _) = seek::walk(look.view, &target.path, Names::from(search.all), make, &|own, met| {
        let path = met.path.to_string();
        let name = path.rsplit('/').next().unwrap_or(&path);
        let like = queries.iter().any(|query| nearest::is_like(name, query));
        if met.top == Top::File && like && look.view.may_read(met.path) {
            own.push(path);
        }
        Ok(())
    })?;
    let mut names: Vec<String> = found.into_iter().flatten().collect();
    names.sort_by_key(|name| (name.len(), name.clone()));
    names.truncate(limits::SEARCH_NAMES_MAX);
    Ok(names)
}
