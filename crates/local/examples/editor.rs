//! An example of an editor with a built-in agent, without a proxy: `cargo run -p stead-local --example editor`.
//!
//! A person has a file open with unsaved changes. The agent reads the unsaved text and changes another part of it; the
//! person goes on typing, saves, reviews the agent's changes, and rejects one hunk.

#![expect(clippy::disallowed_methods, reason = "an example makes its own directory")]
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use stead_engine::Principal;
use stead_local::{BufferChangeResult, LocalWorkspaceOptions, WorkspaceEmbeddedInEditor};

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::temp_dir().join(format!("stead-editor-{}", std::process::id()));
    std::fs::create_dir_all(directory.join("project"))?;
    let done = run_example(&directory);
    std::fs::remove_dir_all(&directory)?;
    done
}

pub(crate) fn run_example(directory: &std::path::Path) -> Result<(), Box<dyn Error>> {
    let file = directory.join("project/shopping.txt");
    std::fs::write(&file, "milk\nbread\neggs\nsalt\ntea\n")?;
    let person = Principal::parse("user:ann")?;
    let editor = WorkspaceEmbeddedInEditor::open(
        LocalWorkspaceOptions::new(directory.join("project"), directory.join("state")),
        person,
    )?;

    // The person opens the file and types at its end. Nothing is saved.
    let opened = editor.open_buffer("shopping.txt", &std::fs::read_to_string(&file)?)?;
    let typed = "milk\nbread\neggs\nsalt\ntea\ncoffee\n";
    let BufferChangeResult::Accepted(buffer) = editor.change_buffer("shopping.txt", opened.revision, typed)? else {
        return Err("unexpected conflict".into());
    };

    // The agent reads the unsaved text and changes two lines.
    let agent = editor.agent("agent:helper", "session 1")?;
    agent.begin_turn()?;
    let seen = agent.read_text_file("shopping.txt", None, None)?;
    println!("the agent reads:\n{seen}");
    agent.write_text_file("shopping.txt", &seen.replace("milk", "oat milk").replace("eggs", "six eggs"))?;
    println!("on disk:\n{}", std::fs::read_to_string(&file)?);

    // The editor does not know the agent's changes, and the person goes on typing. The result contains both.
    let more = "milk\nbread\neggs\nsalt\ntea\ncoffee\nsugar\n";
    let BufferChangeResult::Accepted(buffer) = editor.change_buffer("shopping.txt", buffer.revision, more)? else {
        return Err("unexpected conflict".into());
    };
    println!("on the screen:\n{}", buffer.text.unwrap_or_default());
    editor.save_buffer("shopping.txt")?;

    // The person reviews the agent's changes, rejects one hunk and accepts the rest.
    let review = editor.review("agent:helper", "session 1");
    for file in review.files()? {
        println!("{} {}:\n{}", file.change, file.path, file.diff);
        let first = file.hunks.iter().find(|hunk| hunk.authors == ["agent:helper"]);
        if let Some(hunk) = first {
            review.reject(&file.path, Some(&hunk.name))?;
        }
        review.accept(&file.path, None)?;
    }
    println!("in the end:\n{}", std::fs::read_to_string(&file)?);
    editor.close();
    Ok(())
}
