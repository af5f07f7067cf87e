//! An editor with an agent in it, without a proxy: `cargo run -p local --example editor`.
//!
//! A person has a file open and has not saved it. The agent reads what is on the screen and changes another part of it; the
//! person goes on typing, saves, looks over what the agent did, and takes one hunk of it back.

#![expect(clippy::disallowed_methods, reason = "an example makes its own directory")]
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use engine::Principal;
use local::{Editor, Options, Typed};

fn main() -> Result<(), Box<dyn Error>> {
    let place = std::env::temp_dir().join(format!("stead-editor-{}", std::process::id()));
    std::fs::create_dir_all(place.join("project"))?;
    let done = show(&place);
    std::fs::remove_dir_all(&place)?;
    done
}

/// The whole story, in a directory with a `project` in it.
pub(crate) fn show(place: &std::path::Path) -> Result<(), Box<dyn Error>> {
    let file = place.join("project/shopping.txt");
    std::fs::write(&file, "milk\nbread\neggs\nsalt\ntea\n")?;
    let person = Principal::parse("user:ann")?;
    let editor = Editor::open(Options::new(place.join("project"), place.join("state")), person)?;

    // The person opens the file and types at its end. Nothing is saved.
    let opened = editor.open_buffer("shopping.txt", &std::fs::read_to_string(&file)?)?;
    let typed = "milk\nbread\neggs\nsalt\ntea\ncoffee\n";
    let Typed::Taken(held) = editor.change_buffer("shopping.txt", opened.revision, typed)? else {
        return Err("nobody else was there".into());
    };

    // The agent sees what is on the screen, and changes two lines of it.
    let agent = editor.agent("agent:helper", "session 1")?;
    agent.turn()?;
    let seen = agent.read_text_file("shopping.txt", None, None)?;
    println!("the agent reads:\n{seen}");
    agent.write_text_file("shopping.txt", &seen.replace("milk", "oat milk").replace("eggs", "six eggs"))?;
    println!("on disk:\n{}", std::fs::read_to_string(&file)?);

    // The editor has not heard of it, and the person goes on typing. What comes back is both.
    let more = "milk\nbread\neggs\nsalt\ntea\ncoffee\nsugar\n";
    let Typed::Taken(held) = editor.change_buffer("shopping.txt", held.revision, more)? else {
        return Err("they did not touch the same lines".into());
    };
    println!("on the screen:\n{}", held.text.unwrap_or_default());
    editor.save_buffer("shopping.txt")?;

    // The person looks over what the agent did, takes one hunk back and keeps the rest.
    let review = editor.reviewing("agent:helper", "session 1");
    for file in review.files()? {
        println!("{} {}:\n{}", file.change, file.path, file.diff);
        let first = file.hunks.iter().find(|hunk| hunk.by == ["agent:helper"]);
        if let Some(hunk) = first {
            review.reject(&file.path, Some(&hunk.name))?;
        }
        review.keep(&file.path, None)?;
    }
    println!("in the end:\n{}", std::fs::read_to_string(&file)?);
    editor.close();
    Ok(())
}
