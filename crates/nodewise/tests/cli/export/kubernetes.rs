//! Objects of Kubernetes against the rules of their fields, which are test data beside this file: neither a cluster nor
//! its programs are needed.

use std::collections::VecDeque;

use regex_lite::Regex;
use serde_json::{Map, Value};

use crate::nodewise::run;

use super::{exported, machines};

/// The fields of a NodeResourceTopology.
const TOPOLOGY: &str = include_str!("noderesourcetopology.json");

/// A line of YAML: its indentation, and its text.
type Line = (usize, String);

/// Reads the part of YAML that is written here: maps and lists by indentation, scalars as JSON writes them or as one word.
pub fn yaml(text: &str) -> Result<Value, String> {
    let mut lines: VecDeque<Line> = text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'))
        .map(|line| (line.len() - line.trim_start().len(), line.trim_start().to_owned()))
        .collect();
    let value = block(&mut lines, 0)?;
    lines.front().map_or(Ok(value), |(_, line)| Err(format!("{line}: its indentation belongs to nothing")))
}

fn block(lines: &mut VecDeque<Line>, indent: usize) -> Result<Value, String> {
    let (mut items, mut fields) = (Vec::new(), Map::new());
    while lines.front().is_some_and(|(own, _)| *own == indent) {
        let (_, line) = lines.pop_front().unwrap();
        if let Some(rest) = line.strip_prefix("- ") {
            lines.push_front((indent + 2, rest.to_owned()));
            items.push(block(lines, indent + 2)?);
            continue;
        }
        let (key, rest) = line.split_once(':').ok_or_else(|| format!("{line}: expected key: value"))?;
        let value = match rest.trim() {
            "" => block(lines, indent + 2)?,
            scalar => scalar_of(scalar)?,
        };
        if fields.insert(key.to_owned(), value).is_some() {
            return Err(format!("{key} is there twice"));
        }
    }
    match (items.is_empty(), fields.is_empty()) {
        (false, true) => Ok(Value::Array(items)),
        (true, false) => Ok(Value::Object(fields)),
        _ => Err(format!("a list and a map, or nothing, at {indent} blanks")),
    }
}

fn scalar_of(text: &str) -> Result<Value, String> {
    let is_word = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "./-".contains(c))
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"]
            .contains(&text.to_lowercase().as_str());
    if is_word {
        return Ok(text.into());
    }
    serde_json::from_str(text).map_err(|error| format!("{text}: {error}"))
}

/// Holds a value against a schema that uses the words below; any other word is an error, as it would be ignored.
pub fn check(value: &Value, schema: &Value, root: &Value, path: &str) -> Result<(), String> {
    let wrong = |what: &str| Err(format!("{path}: {value} {what}"));
    for (word, rule) in schema.as_object().unwrap() {
        match word.as_str() {
            "$ref" => check(value, &root["$defs"][rule.as_str().unwrap()], root, path)?,
            "const" if value != rule => return wrong(&format!("is not {rule}")),
            "pattern" => {
                let text = value.as_str().unwrap_or_default();
                if !Regex::new(rule.as_str().unwrap()).unwrap().is_match(text) {
                    return wrong(&format!("does not match {rule}"));
                }
            }
            "type" => {
                let is_one = |name: &Value| match name.as_str().unwrap() {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "integer" => value.is_i64(),
                    "number" => value.is_number(),
                    "boolean" => value.is_boolean(),
                    "null" => value.is_null(),
                    other => panic!("the type {other} is not known here"),
                };
                let is_right = rule.as_array().map_or_else(|| is_one(rule), |all| all.iter().any(is_one));
                if !is_right {
                    return wrong(&format!("is not of type {rule}"));
                }
            }
            "required" => {
                let mut names = rule.as_array().unwrap().iter().filter_map(Value::as_str);
                if let Some(name) = names.find(|name| value.get(name).is_none()) {
                    return wrong(&format!("lacks {name}"));
                }
            }
            "items" => {
                for (at, item) in value.as_array().unwrap().iter().enumerate() {
                    check(item, rule, root, &format!("{path}[{at}]"))?;
                }
            }
            "properties" => {
                for (name, value) in value.as_object().unwrap() {
                    match rule
                        .get(name)
                        .or(schema.get("additionalProperties").filter(|more| more.is_object()))
                    {
                        Some(schema) => check(value, schema, root, &format!("{path}.{name}"))?,
                        None => return wrong(&format!("has the field {name}")),
                    }
                }
            }
            "enum" if !rule.as_array().unwrap().contains(value) => {
                return wrong(&format!("is none of {rule}"));
            }
            "oneOf" => {
                let fits = rule.as_array().unwrap().iter().any(|one| check(value, one, root, path).is_ok());
                if !fits {
                    return wrong("fits none of its forms");
                }
            }
            "additionalProperties" if rule.is_object() && schema.get("properties").is_none() => {
                for (name, value) in value.as_object().into_iter().flatten() {
                    check(value, rule, root, &format!("{path}.{name}"))?;
                }
            }
            "const" | "enum" | "$comment" | "$defs" | "additionalProperties" => {}
            other => panic!("the word {other} is not known here"),
        }
    }
    Ok(())
}

fn check_topology(text: &str) -> Result<Value, String> {
    let schema: Value = serde_json::from_str(TOPOLOGY).unwrap();
    let object = yaml(text)?;
    check(&object, &schema, &schema, "topology").map(|()| object)
}

#[test]
fn topologies_keep_the_rules_of_their_fields() {
    let mut zones = 0;
    for machine in machines() {
        let ran = run(&["export", "kubernetes", "--machine", &machine, "--host", "web7.example"]);
        if ran.code == Some(3) {
            assert!(ran.stderr.contains("NUMA nodes"), "{machine}: {}", ran.stderr);
            continue;
        }
        let object = check_topology(&ran.ok()).unwrap_or_else(|error| panic!("{machine}: {error}"));
        let shown = run(&["show", "--json", "--machine", &machine]).ok_json();
        let nodes = shown["nodes"].as_array().unwrap().len();
        assert_eq!(object["zones"].as_array().unwrap().len(), nodes, "{machine}");
        zones += nodes;
    }
    assert!(zones > 100, "{zones}");
}

#[test]
fn fields_against_the_rules_are_found() {
    let good = run(&["export", "kubernetes", "--machine", "2x(2c 4G)", "--host", "web7"]).ok();
    check_topology(&good).unwrap();
    for (from, to, message) in [
        ("    type: Node\n", "", "lacks type"),
        ("    type: Node\n", "    type: Node\n    kind: Node\n", "has the field kind"),
        ("value: 10\n", "value: \"10\"\n", "is not of type \"integer\""),
        ("capacity: \"2\"", "capacity: \"2 CPUs\"", "does not match"),
        ("name: \"web7\"", "name: \"Web 7\"", "does not match"),
        ("v1alpha2", "v1alpha1", "is not \"topology.node.k8s.io/v1alpha2\""),
        ("kind: NodeResourceTopology\n", "kind: NodeResourceTopology\nkind: NodeResourceTopology\n", "twice"),
    ] {
        assert!(good.contains(from), "{from}: {good}");
        let error = check_topology(&good.replacen(from, to, 1)).unwrap_err();
        assert!(error.contains(message), "{to}: {error}");
    }
}

#[test]
fn features_are_labels_that_a_cluster_takes() {
    // The rules of label names and values; a name without a prefix gets that of the discovery.
    let label =
        Regex::new("^nodewise\\.[a-z]([-a-z.]{0,52}[a-z])?=[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")
            .unwrap();
    for machine in machines() {
        let text = exported("nfd", &machine);
        assert!(text.ends_with('\n') && !text.is_empty(), "{machine}: {text}");
        let mut names: Vec<&str> = text.lines().filter_map(|line| line.split('=').next()).collect();
        for line in text.lines() {
            assert!(label.is_match(line), "{machine}: {line}");
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), text.lines().count(), "{machine}: {text}");
    }
}
