//! The parts of the command: a CycloneDX document (SBOM) of all crates that it is compiled from.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::Packaging;
use crate::program;

/// Writes it.
pub fn make(packaging: &Packaging) -> Result<PathBuf> {
    let metadata = program::resolved(&packaging.root, packaging.platform.target(), &[])?;
    let lock = fs::read_to_string(packaging.root.join("Cargo.lock")).context("Cargo.lock")?;
    let document =
        document(&metadata, &checksums(&lock), &packaging.version).context("cargo metadata lacks a field")?;
    let name = format!("nodewise-{}-{}.cdx.json", packaging.version, packaging.platform.kernel());
    let file = packaging.out.join(name);
    fs::write(&file, format!("{document:#}\n")).with_context(|| file.display().to_string())?;
    Ok(file)
}

/// The document; without times and random numbers, so that the same commit gives the same bytes.
fn document(metadata: &Value, checksums: &BTreeMap<String, String>, version: &str) -> Option<Value> {
    let packages = metadata["packages"].as_array()?;
    let by_id: BTreeMap<&str, &Value> =
        packages.iter().filter_map(|package| Some((package["id"].as_str()?, package))).collect();
    let edges: BTreeMap<&str, Vec<&str>> = metadata["resolve"]["nodes"]
        .as_array()?
        .iter()
        .filter_map(|node| Some((node["id"].as_str()?, used(node)?)))
        .collect();
    let root = packages.iter().find(|package| package["name"] == "nodewise")?["id"].as_str()?;
    let mut needed = BTreeSet::new();
    let mut open = vec![root];
    while let Some(id) = open.pop() {
        if needed.insert(id) {
            open.extend(edges.get(id).into_iter().flatten());
        }
    }
    let needed: Vec<&Value> = needed.into_iter().filter_map(|id| by_id.get(id).copied()).collect();
    let components: Option<Vec<Value>> = needed
        .iter()
        .filter(|package| !package["source"].is_null())
        .map(|package| component(package, checksums))
        .collect();
    let dependencies: Vec<Value> = needed
        .iter()
        .filter_map(|package| {
            let on: Vec<String> = edges
                .get(package["id"].as_str()?)?
                .iter()
                .map(|id| reference(by_id.get(id)?))
                .collect::<Option<_>>()?;
            Some(json!({ "ref": reference(package)?, "dependsOn": on }))
        })
        .collect();
    Some(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": {
            "type": "application", "bom-ref": format!("nodewise@{version}"), "name": "nodewise", "version": version,
            "licenses": [{ "expression": "MIT OR Apache-2.0" }],
        } },
        "components": components?,
        "dependencies": dependencies,
    }))
}

/// The crates that a crate is compiled from or with: not those of its tests.
fn used(node: &Value) -> Option<Vec<&str>> {
    let is_used = |edge: &&Value| {
        edge["dep_kinds"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"] != "dev"))
    };
    Some(node["deps"].as_array()?.iter().filter(is_used).filter_map(|edge| edge["pkg"].as_str()).collect())
}

fn reference(package: &Value) -> Option<String> {
    Some(format!("{}@{}", package["name"].as_str()?, package["version"].as_str()?))
}

fn component(package: &Value, checksums: &BTreeMap<String, String>) -> Option<Value> {
    let reference = reference(package)?;
    let mut component = json!({
        "type": "library",
        "bom-ref": reference,
        "name": package["name"],
        "version": package["version"],
        "purl": format!("pkg:cargo/{reference}"),
    });
    if let Some(licence) = package["license"].as_str() {
        // The older way to write a choice.
        component["licenses"] = json!([{ "expression": licence.replace('/', " OR ") }]);
    }
    if let Some(sum) = checksums.get(&reference) {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
    }
    Some(component)
}

/// The sums of crates in a lock file, by `name@version`.
fn checksums(lock: &str) -> BTreeMap<String, String> {
    let value = |block: &str, key: &str| {
        block.lines().find_map(|line| {
            Some(line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"')?.to_owned())
        })
    };
    let blocks = lock.split("[[package]]").skip(1);
    blocks
        .filter_map(|block| {
            let name = format!("{}@{}", value(block, "name")?, value(block, "version")?);
            Some((name, value(block, "checksum")?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Value {
        let package = |name: &str, source: Value| json!({ "id": name, "name": name, "version": "1.0.0", "source": source, "license": "MIT/Apache-2.0" });
        let edge = |name: &str, kind: Value| json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] });
        json!({
            "packages": [
                package("nodewise", Value::Null),
                package("used", json!("registry")),
                package("built-with", json!("registry")),
                package("of-tests", json!("registry")),
                package("of-xtask", json!("registry")),
            ],
            "resolve": { "nodes": [
                { "id": "nodewise", "deps": [edge("used", Value::Null), edge("of-tests", json!("dev"))] },
                { "id": "used", "deps": [edge("built-with", json!("build"))] },
                { "id": "built-with", "deps": [] },
                { "id": "of-tests", "deps": [] },
                { "id": "of-xtask", "deps": [] },
            ] },
        })
    }

    #[test]
    fn parts_are_what_the_command_is_compiled_from() {
        let sums = checksums("[[package]]\nname = \"used\"\nversion = \"1.0.0\"\nchecksum = \"ab12\"\n");
        let document = document(&example(), &sums, "0.1.0").unwrap();
        let names: Vec<&str> = document["components"]
            .as_array()
            .unwrap()
            .iter()
            .map(|part| part["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["built-with", "used"]);
        assert_eq!(document["components"][1]["hashes"][0]["content"], "ab12");
        assert_eq!(document["components"][1]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(document["dependencies"][1]["dependsOn"], json!(["used@1.0.0"]));
    }

    #[test]
    fn the_lock_of_this_workspace_has_a_sum_for_each_crate_of_others() {
        let lock = include_str!("../../../Cargo.lock");
        let with_source = lock.matches("\nsource = ").count();
        assert_eq!(checksums(lock).len(), with_source);
    }
}
