//! The change from one JSON value to the next, and back.
//!
//! Frames of a recording resemble one another, so all but the first of a minute are written as changes. A change
//! is JSON, too, in the manner of RFC 7396 (JSON Merge Patch) with three additions: whole numbers hold the
//! difference, which is short and repeats; arrays of whole numbers of the same length hold an array of
//! differences; and `{"=": value}` replaces where neither is meant. Nothing here knows the fields of a frame, so
//! fields that a later release adds pass through.
//!
//! Values hold no `null`: in a change it takes a member away.

use serde_json::{Map, Number, Value};

/// The member that replaces what is there.
const REPLACE: &str = "=";

/// The change that makes `now` of `before`; `None` where they are equal.
pub(super) fn change(before: &Value, now: &Value) -> Option<Value> {
    if before == now {
        return None;
    }
    Some(match (before, now) {
        (Value::Object(before), Value::Object(now)) => {
            let members = members(before, now);
            if is_replacement(&members) { replacement(Value::Object(now.clone())) } else { members.into() }
        }
        (Value::Number(before), Value::Number(now)) => match difference(before, now) {
            Some(difference) => difference.into(),
            None => absolute(before.is_u64(), now),
        },
        (Value::Array(before), Value::Array(now)) => match differences(before, now) {
            Some(differences) => Value::Array(differences),
            None if is_whole(before) && is_signed(now) && before.len() == now.len() => {
                replacement(Value::Array(now.clone()))
            }
            None => Value::Array(now.clone()),
        },
        // An object is a change, unless it replaces something else.
        (_, Value::Object(members)) if is_replacement(members) => replacement(now.clone()),
        (_, now) => now.clone(),
    })
}

/// Makes a change. A damaged change to a missing value is taken as the value.
pub(super) fn apply(value: &mut Value, change: Value) {
    match (value, change) {
        (value, Value::Object(mut members)) if is_replacement(&members) => {
            *value = members.remove(REPLACE).unwrap_or_default();
        }
        (Value::Object(members), Value::Object(changes)) => {
            for (name, change) in changes {
                if change.is_null() {
                    members.remove(&name);
                } else {
                    match members.get_mut(&name) {
                        Some(member) => apply(member, change),
                        None => {
                            members.insert(name, fresh(change));
                        }
                    }
                }
            }
        }
        (Value::Number(number), Value::Number(change)) => {
            let changed = sum(number, &change);
            *number = changed.unwrap_or(change);
        }
        (Value::Array(items), Value::Array(changes)) => {
            let sums = sums(items, &changes);
            *items = sums.unwrap_or(changes);
        }
        (value, change) => *value = change,
    }
}

/// The value that a change makes where there was none.
fn fresh(change: Value) -> Value {
    let mut value = Value::Null;
    apply(&mut value, change);
    value
}

fn members(before: &Map<String, Value>, now: &Map<String, Value>) -> Map<String, Value> {
    let mut changes = Map::new();
    for (name, value) in now {
        match before.get(name) {
            Some(old) => {
                changes.extend(change(old, value).map(|change| (name.clone(), change)));
            }
            None if value.as_object().is_some_and(is_replacement) => {
                changes.insert(name.clone(), replacement(value.clone()));
            }
            None => {
                changes.insert(name.clone(), value.clone());
            }
        }
    }
    let gone = before.keys().filter(|name| !now.contains_key(*name));
    changes.extend(gone.map(|name| (name.clone(), Value::Null)));
    changes
}

fn replacement(value: Value) -> Value {
    Value::Object(Map::from_iter([(REPLACE.to_owned(), value)]))
}

fn is_replacement(members: &Map<String, Value>) -> bool {
    members.len() == 1 && members.contains_key(REPLACE)
}

/// A number that takes the place of another, where a whole one would be taken for a difference.
fn absolute(before_is_whole: bool, now: &Number) -> Value {
    let now_is_whole = now.is_u64() || now.is_i64();
    let value = Value::Number(now.clone());
    if before_is_whole && now_is_whole { replacement(value) } else { value }
}

/// The difference of two counters, around the end of 64 bits where a counter went back.
fn difference(before: &Number, now: &Number) -> Option<Number> {
    let difference = now.as_u64()?.wrapping_sub(before.as_u64()?);
    Some(Number::from(i64::from_ne_bytes(difference.to_ne_bytes())))
}

fn sum(number: &Number, change: &Number) -> Option<Number> {
    let change = change.as_i64()?;
    Some(Number::from(number.as_u64()?.wrapping_add_signed(change)))
}

fn is_whole(items: &[Value]) -> bool {
    items.iter().all(Value::is_u64)
}

fn is_signed(items: &[Value]) -> bool {
    items.iter().all(Value::is_i64)
}

fn differences(before: &[Value], now: &[Value]) -> Option<Vec<Value>> {
    if before.len() != now.len() {
        return None;
    }
    let pairs = before.iter().zip(now);
    let differences = pairs.map(|pair| match pair {
        (Value::Number(before), Value::Number(now)) => difference(before, now).map(Value::Number),
        _ => None,
    });
    differences.collect()
}

fn sums(items: &[Value], changes: &[Value]) -> Option<Vec<Value>> {
    if items.len() != changes.len() {
        return None;
    }
    let pairs = items.iter().zip(changes);
    let sums = pairs.map(|pair| match pair {
        (Value::Number(number), Value::Number(change)) => sum(number, change).map(Value::Number),
        _ => None,
    });
    sums.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{Just, Strategy, any, prop, prop_assert_eq, prop_oneof, proptest};
    use serde_json::json;

    #[test]
    fn a_change_holds_differences_and_names_what_went() {
        let before = json!({"free": 100, "cpu": [10, 20], "name": "a", "gone": {"x": 1}, "same": 7});
        let now = json!({"free": 90, "cpu": [11, 20], "name": "b", "new": {"y": 2}, "same": 7});
        let change = change(&before, &now).unwrap();
        assert_eq!(change, json!({"free": -10, "cpu": [1, 0], "name": "b", "gone": null, "new": {"y": 2}}));
        let mut value = before;
        apply(&mut value, change);
        assert_eq!(value, now);
    }

    #[test]
    fn a_counter_comes_round_its_end_and_a_float_is_no_difference() {
        let check = |before: Value, now: Value| {
            let mut value = before.clone();
            apply(&mut value, change(&before, &now).unwrap());
            assert_eq!(value, now, "{before}");
        };
        check(json!(u64::MAX), json!(3));
        check(json!(3), json!(-3));
        check(json!(3), json!(0.5));
        check(json!(0.5), json!(3));
        check(json!([1, 2]), json!([1, -2]));
        check(json!([1, 2]), json!([1]));
        check(json!({}), json!({"=": 1}));
        check(json!({"a": 1}), json!({"=": 1, "a": 1}));
        check(json!({"=": 1}), json!({"=": 2}));
        check(json!(1), json!({"=": {"=": 2}}));
    }

    fn values() -> impl Strategy<Value = Value> {
        let whole = prop_oneof![0u64..4, any::<u64>()].prop_map(|n| json!(n));
        let leaf = prop_oneof![
            4 => whole.clone(),
            1 => (-4i64..0).prop_map(|n| json!(n)),
            1 => Just(json!(0.25)),
            1 => Just(json!("a")),
            1 => Just(json!(true)),
            1 => prop::collection::vec(whole, 0..4).prop_map(Value::Array),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                prop::collection::btree_map("[ab=]", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_change_makes_the_new_of_the_old(before in values(), now in values()) {
            let mut value = before.clone();
            if let Some(change) = change(&before, &now) {
                apply(&mut value, change);
            }
            prop_assert_eq!(value, now);
        }

        #[test]
        fn any_change_can_be_made_to_any_value(mut value in values(), change in values()) {
            apply(&mut value, change);
        }
    }
}
