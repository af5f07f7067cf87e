//! Everything that is measured against each other: the server in both durabilities, the reference server, and the disk.
//! Each has a workspace of its own with equal files, so that none waits for another.

use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    time::Instant,
};

use super::{
    files,
    peer::{Peer, Recipe, Vocabulary},
    speaker::milliseconds,
};

/// Bytes appended before a sync is timed: about one small record.
const APPENDED: &[u8] = &[b'x'; 512];

/// The servers and the disk.
pub(super) struct Field {
    pub(super) fast: Peer,
    pub(super) full: Peer,
    pub(super) reference: Peer,
    /// For starts.
    pub(super) starts: Starts,
    /// A file whose syncs are timed.
    probe: File,
}

/// What is needed to start servers over and over.
pub(super) struct Starts {
    pub(super) stead: Recipe,
    pub(super) reference: Recipe,
    binary: PathBuf,
    place: PathBuf,
    firsts: usize,
}

impl Field {
    pub(super) fn set_up(place: &Path, binary: &Path, script: &Path) -> Result<Self, String> {
        println!("bench: making files in {}", place.display());
        let workspace = |name: &str| -> Result<PathBuf, String> {
            let directory = place.join(name);
            fs::create_dir(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
            files::fill(&directory)?;
            Ok(directory)
        };
        let (fast, full, other) = (workspace("fast")?, workspace("full")?, workspace("reference")?);
        let starting = place.join("starting");
        fs::create_dir(&starting).map_err(|error| error.to_string())?;
        let starts = Starts {
            stead: stead(binary, &starting, &place.join("starting-state"), "fast"),
            reference: reference(script, &starting),
            binary: binary.to_owned(),
            place: place.to_owned(),
            firsts: 0,
        };
        let probe = OpenOptions::new().create_new(true).append(true).open(place.join("probe"));
        Ok(Self {
            fast: Peer::start(
                Vocabulary::Stead,
                &stead(binary, &fast, &place.join("fast-state"), "fast"),
                &fast,
            )?,
            full: Peer::start(
                Vocabulary::Stead,
                &stead(binary, &full, &place.join("full-state"), "full"),
                &full,
            )?,
            reference: Peer::start(Vocabulary::Reference, &reference(script, &other), &other)?,
            starts,
            probe: probe.map_err(|error| format!("the probe: {error}"))?,
        })
    }

    /// What one sync of a small append costs, without the append.
    pub(super) fn sync(&mut self) -> Result<f64, String> {
        self.probe.write_all(APPENDED).map_err(|error| error.to_string())?;
        let started = Instant::now();
        self.probe.sync_data().map_err(|error| error.to_string())?;
        Ok(milliseconds(started.elapsed()))
    }

    pub(super) fn stop(self) {
        self.fast.stop();
        self.full.stop();
        self.reference.stop();
    }
}

impl Starts {
    /// A start that finds no state of an earlier one.
    pub(super) fn first(&mut self) -> Recipe {
        self.firsts += 1;
        let state = self.place.join(format!("first-{}", self.firsts));
        stead(&self.binary, &self.place.join("starting"), &state, "fast")
    }
}

/// How the reference server is started on a workspace.
pub(super) fn reference(script: &Path, workspace: &Path) -> Recipe {
    Recipe { program: PathBuf::from("node"), arguments: vec![script.into(), workspace.into()] }
}

/// How the server is started on a workspace.
pub(super) fn stead(binary: &Path, workspace: &Path, state: &Path, durability: &str) -> Recipe {
    let arguments = vec![
        "mcp".into(),
        "--workspace".into(),
        workspace.into(),
        "--state".into(),
        state.into(),
        "--durability".into(),
        durability.into(),
    ];
    Recipe { program: binary.to_owned(), arguments }
}
