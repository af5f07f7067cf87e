//! `cargo xtask generate` writes every file that is derived from `definitions/`. With `--check`, the command only fails
//! if a generated file is not up to date.

use std::{
    fs,
    path::{Path, PathBuf},
};

mod definition;
mod error_table;
mod openapi;
mod openrpc;
mod operation_types;
mod reference;
mod runtime;

use definition::{NATIVE_DIALECT, schema::DialectDefinition};

const DIALECT_FILES: &[(&str, &str)] = &[
    ("stead", "stead"),
    ("jettson", "jettson"),
    ("weaver", "weaver"),
    ("comma", "comma"),
    ("krux", "filesystem"),
    (ACP_DIALECT, "acp"),
];

/// The dialect of the ACP proxy is not part of the OpenRPC and OpenAPI documents.
const ACP_DIALECT: &str = "acp";

struct GeneratedFile {
    path: PathBuf,
    text: String,
}

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let root = crate::repository_root();
    let products = generate_all(&root)?;
    match arguments {
        [] => write_files(&root, &products),
        [flag] if flag == "--check" => check_files(&root, &products),
        _ => Err("usage: cargo xtask generate [--check]".to_owned()),
    }
}

fn generate_all(root: &Path) -> Result<Vec<GeneratedFile>, String> {
    let mut products = Vec::new();
    let mut definitions = Vec::new();
    let mut tools = String::new();
    let errors = error_table::load(&root.join("definitions/errors.yaml"))?;
    for (dialect, file) in DIALECT_FILES {
        let definition = DialectDefinition::load(root, file, &errors)?;
        let mut product = |path: String, text: String| products.push(GeneratedFile { path: path.into(), text });
        product(format!("crates/protocols/src/generated/{dialect}.json"), runtime::runtime_definition(&definition)?);
        product(format!("crates/protocols/tests/generated/{dialect}.json"), runtime::runtime_examples(&definition)?);
        if *dialect == NATIVE_DIALECT {
            product("docs/reference/operations.md".to_owned(), reference::operations_page(&definition));
        } else {
            product(format!("docs/reference/dialects/{dialect}.md"), reference::dialect_page(&definition));
        }
        if *dialect != NATIVE_DIALECT {
            tools.extend(definition.operations.iter().map(|tool| format!("{dialect}/{}\n", tool.name)));
        }
        if *dialect != ACP_DIALECT {
            definitions.push(definition);
        }
    }
    let mut product = |path: &str, text: String| products.push(GeneratedFile { path: path.into(), text });
    product("crates/engine/src/policy/tools.txt", tools);
    product("crates/engine/src/generated/error_kind.rs", error_table::engine_table(&errors));
    product("crates/protocols/src/generated/error_rows.rs", error_table::protocol_table(&errors)?);
    product("docs/reference/errors.md", error_table::errors_page(&errors));
    product("docs/reference/exit-codes.md", error_table::exit_codes_page(&errors));
    product("crates/protocols/src/generated/openrpc.json", openrpc::openrpc_parts(&definitions));
    product("docs/reference/openrpc.json", openrpc::openrpc_document(&definitions));
    product("crates/protocols/src/generated/openapi.json", openapi::openapi_document(&definitions));
    product("docs/reference/openapi.json", openapi::openapi_document(&definitions));
    Ok(products)
}

fn write_files(root: &Path, products: &[GeneratedFile]) -> Result<(), String> {
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

fn check_files(root: &Path, products: &[GeneratedFile]) -> Result<(), String> {
    let differs =
        |product: &&GeneratedFile| !fs::read_to_string(root.join(&product.path)).is_ok_and(|text| text == product.text);
    let stale: Vec<String> =
        products.iter().filter(differs).map(|product| format!("  {}", product.path.display())).collect();
    if stale.is_empty() {
        return Ok(());
    }
    Err(format!("generated files are out of date; run `cargo xtask generate`:\n{}", stale.join("\n")))
}

#[cfg(test)]
mod tests {
    #[test]
    fn generated_files_are_up_to_date() {
        let outcome = super::run(&["--check".to_owned()]);
        assert_eq!(outcome, Ok(()));
    }
}
