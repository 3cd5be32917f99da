//! Generates the client, so that the story is compiled against the current document.

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
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join("client.rs"), text)?;
    Ok(())
}
