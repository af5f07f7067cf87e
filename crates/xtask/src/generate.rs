//! `cargo xtask generate`: everything that comes from `definitions/`. Writes the files, or with `--check` fails when one
//! of them differs. Never reads its own output.

use std::{
    fs,
    path::{Path, PathBuf},
};

mod definition;
mod openapi;
mod openrpc;
mod reference;
mod runtime;

use definition::{Definition, NATIVE};

/// The dialects, and the files of `definitions/` that declare them.
const DIALECTS: &[(&str, &str)] = &[
    ("stead", "stead"),
    ("jettson", "jettson"),
    ("weaver", "weaver"),
    ("comma", "comma"),
    ("krux", "filesystem"),
    (PROXIED, "acp"),
];

/// The dialect that only the proxy speaks: its methods are no methods of ours over JSON-RPC.
const PROXIED: &str = "acp";

/// One file to be.
struct Product {
    path: PathBuf,
    text: String,
}

/// Runs the command.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let root = crate::root();
    let products = products(&root)?;
    match arguments {
        [] => write(&root, &products),
        [flag] if flag == "--check" => check(&root, &products),
        _ => Err("usage: cargo xtask generate [--check]".to_owned()),
    }
}

fn products(root: &Path) -> Result<Vec<Product>, String> {
    let mut products = Vec::new();
    let mut definitions = Vec::new();
    let mut tools = String::new();
    for (dialect, file) in DIALECTS {
        let definition = Definition::load(&root.join(format!("definitions/{file}.yaml")))?;
        let mut product = |path: String, text: String| products.push(Product { path: path.into(), text });
        product(format!("crates/faces/src/generated/{dialect}.json"), runtime::definitions(&definition)?);
        product(format!("crates/faces/tests/generated/{dialect}.json"), runtime::examples(&definition)?);
        if *dialect == NATIVE {
            product("docs/reference/operations.md".to_owned(), reference::operations(&definition));
            product("docs/reference/errors.md".to_owned(), reference::errors(&definition));
        } else {
            product(format!("docs/reference/dialects/{dialect}.md"), reference::dialect(&definition));
        }
        if *dialect != NATIVE {
            tools.extend(definition.operations.iter().map(|tool| format!("{dialect}/{}\n", tool.name)));
        }
        if *dialect != PROXIED {
            definitions.push(definition);
        }
    }
    let mut product = |path: &str, text: String| products.push(Product { path: path.into(), text });
    product("crates/engine/src/policy/tools.txt", tools);
    product("crates/faces/src/generated/openrpc.json", openrpc::parts(&definitions));
    product("docs/reference/openrpc.json", openrpc::document(&definitions));
    product("crates/faces/src/generated/openapi.json", openapi::document(&definitions));
    product("docs/reference/openapi.json", openapi::document(&definitions));
    Ok(products)
}

fn write(root: &Path, products: &[Product]) -> Result<(), String> {
    for product in products {
        let path = root.join(&product.path);
        if fs::read_to_string(&path).is_ok_and(|text| text == product.text) {
            continue;
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|error| format!("{}: {error}", parent.display()))?;
        }
        fs::write(&path, &product.text).map_err(|error| format!("{}: {error}", path.display()))?;
        println!("wrote {}", product.path.display());
    }
    Ok(())
}

fn check(root: &Path, products: &[Product]) -> Result<(), String> {
    let differs = |product: &&Product| {
        !fs::read_to_string(root.join(&product.path)).is_ok_and(|text| text == product.text)
    };
    let stale: Vec<String> =
        products.iter().filter(differs).map(|product| format!("  {}", product.path.display())).collect();
    if stale.is_empty() {
        return Ok(());
    }
    Err(format!("not what definitions/ says; run `cargo xtask generate`:\n{}", stale.join("\n")))
}

#[cfg(test)]
mod tests {
    #[test]
    fn generated_files_are_current() {
        let outcome = super::run(&["--check".to_owned()]);
        assert_eq!(outcome, Ok(()));
    }
}
