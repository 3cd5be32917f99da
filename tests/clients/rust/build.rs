//! Generates the client from the current OpenAPI document, and extracts the example code from `openapi/README.md`.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let document = env::var("FOLDWORK_DOCUMENT")?;
    println!("cargo::rerun-if-changed={document}");
    println!("cargo::rerun-if-env-changed=FOLDWORK_DOCUMENT");
    let document: openapiv3::OpenAPI = serde_json::from_str(&fs::read_to_string(document)?)?;
    let mut settings = progenitor_impl::GenerationSettings::default();
    settings.with_interface(progenitor_impl::InterfaceStyle::Builder);
    let tokens = progenitor_impl::Generator::new(&settings).generate_tokens(&document)?;
    let text = prettyplease::unparse(&syn::parse2(tokens)?);
    let output = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(output.join("client.rs"), text)?;
    let readme = env::var("FOLDWORK_README")?;
    println!("cargo::rerun-if-changed={readme}");
    println!("cargo::rerun-if-env-changed=FOLDWORK_README");
    let readme = fs::read_to_string(readme)?;
    let code = readme.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next()).ok_or("no Rust code block")?;
    // Replaces the address, because the server of the test listens on another port.
    let code = code.replace("\"http://127.0.0.1:8080/api/v1\"", "&std::env::var(\"FOLDWORK_BASE\")?");
    fs::write(output.join("usage.rs"), format!("{{\n{code}\nOk(())\n}}\n"))?;
    Ok(())
}
