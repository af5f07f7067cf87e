//! The servers in the benchmark: stead with durability `fast` and `full`, and the reference server. Each server has its
//! own workspace, with equal files.

use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    time::Instant,
};

use crate::{
    bench_server::{BenchServer, BenchServerStartCommand, BenchServerToolNameScheme},
    mcp_client::to_milliseconds,
    workspace_files,
};

const APPENDED_BYTES: &[u8] = &[b'x'; 512];

pub(crate) struct BenchServers {
    pub(crate) fast: BenchServer,
    pub(crate) full: BenchServer,
    pub(crate) reference: BenchServer,
    pub(crate) start_recipes: BenchServerStartCommands,
    sync_probe: File,
}

/// The commands that measure how long a server takes to start.
pub(crate) struct BenchServerStartCommands {
    pub(crate) stead: BenchServerStartCommand,
    pub(crate) reference: BenchServerStartCommand,
    binary: PathBuf,
    directory: PathBuf,
    first_starts: usize,
}

impl BenchServers {
    pub(crate) fn start_all(place: &Path, binary: &Path, script: &Path) -> Result<Self, String> {
        println!("bench: making files in {}", place.display());
        let workspace = |name: &str| -> Result<PathBuf, String> {
            let directory = place.join(name);
            fs::create_dir(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
            workspace_files::fill_workspace(&directory)?;
            Ok(directory)
        };
        let (fast, full, other) = (workspace("fast")?, workspace("full")?, workspace("reference")?);
        let starting = place.join("starting");
        fs::create_dir(&starting).map_err(|error| error.to_string())?;
        let starts = BenchServerStartCommands {
            stead: stead_launch(binary, &starting, &place.join("starting-state"), "fast"),
            reference: reference_launch(script, &starting),
            binary: binary.to_owned(),
            directory: place.to_owned(),
            first_starts: 0,
        };
        let probe = OpenOptions::new().create_new(true).append(true).open(place.join("probe"));
        Ok(Self {
            fast: BenchServer::start(
                BenchServerToolNameScheme::Stead,
                &stead_launch(binary, &fast, &place.join("fast-state"), "fast"),
                &fast,
            )?,
            full: BenchServer::start(
                BenchServerToolNameScheme::Stead,
                &stead_launch(binary, &full, &place.join("full-state"), "full"),
                &full,
            )?,
            reference: BenchServer::start(
                BenchServerToolNameScheme::Reference,
                &reference_launch(script, &other),
                &other,
            )?,
            start_recipes: starts,
            sync_probe: probe.map_err(|error| format!("the probe: {error}"))?,
        })
    }

    /// Appends a few bytes to a file and measures the time of the following `fdatasync`.
    pub(crate) fn time_sync(&mut self) -> Result<f64, String> {
        self.sync_probe.write_all(APPENDED_BYTES).map_err(|error| error.to_string())?;
        let started = Instant::now();
        self.sync_probe.sync_data().map_err(|error| error.to_string())?;
        Ok(to_milliseconds(started.elapsed()))
    }

    pub(crate) fn stop_all(self) {
        self.fast.stop();
        self.full.stop();
        self.reference.stop();
    }
}

impl BenchServerStartCommands {
    /// A start command for stead with an empty state directory.
    pub(crate) fn fresh_start(&mut self) -> BenchServerStartCommand {
        self.first_starts += 1;
        let state = self.directory.join(format!("first-{}", self.first_starts));
        stead_launch(&self.binary, &self.directory.join("starting"), &state, "fast")
    }
}

pub(crate) fn reference_launch(script: &Path, workspace: &Path) -> BenchServerStartCommand {
    BenchServerStartCommand { program: PathBuf::from("node"), arguments: vec![script.into(), workspace.into()] }
}

pub(crate) fn stead_launch(binary: &Path, workspace: &Path, state: &Path, durability: &str) -> BenchServerStartCommand {
    let arguments = vec![
        "mcp".into(),
        "--workspace".into(),
        workspace.into(),
        "--state".into(),
        state.into(),
        "--durability".into(),
        durability.into(),
    ];
    BenchServerStartCommand { program: binary.to_owned(), arguments }
}
