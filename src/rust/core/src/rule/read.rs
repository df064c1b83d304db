//! Reading a policy as people write it: every field is known, every fault has a
//! place.

use super::{Demand, Error, Policy, Rule, State, STATES};
use crate::error::ReadFrom;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

impl Policy {
    /// Reads a policy from its JSON form and checks all that can be checked
    /// without knowing the metrics.
    ///
    /// # Errors
    /// The first thing that is wrong, with its JSON pointer.
    pub fn parse(value: &Value) -> Result<Policy, Error> {
        let at = Place::root(value);
        let keys = at.object(&POLICY_KEYS)?;
        if let Some(version) = keys.get("version") {
            if at.child("version", version).number()? != 1.0 {
                return Err(at
                    .child("version", version)
                    .wrong("out_of_range", "must be 1"));
            }
        }
        let policy = Policy {
            confidence_level: confidence_level(&at)?,
            block_on: states(&at, "block_on", &STATES[..3])?,
            warn_on: states(&at, "warn_on", &[])?,
            block_on_partial_run: at.flag("block_on_partial_run", Some(true))?,
            require_approval: at.flag("require_approval", Some(false))?,
            rules: rules(&at)?,
        };
        if let Some(both) = policy.block_on.intersection(&policy.warn_on).next() {
            let what = format!(
                "must not hold `{}`, which `block_on` holds too",
                both.word()
            );
            let warn_on = keys.get("warn_on").unwrap_or(value);
            return Err(at.child("warn_on", warn_on).wrong("states_overlap", &what));
        }
        Ok(policy)
    }
}

fn confidence_level(at: &Place) -> Result<f64, Error> {
    let Some(value) = at.value.get("confidence_level") else {
        return Ok(0.95);
    };
    let at = at.child("confidence_level", value);
    let level = at.number()?;
    if level > 0.0 && level < 1.0 {
        return Ok(level);
    }
    let hint = if (1.0..100.0).contains(&level) && level > 1.0 {
        format!("; {} percent is {}", level, level / 100.0)
    } else {
        String::new()
    };
    Err(at.wrong(
        "out_of_range",
        &format!("must lie between 0 and 1, both excluded, and is {level}{hint}"),
    ))
}

fn states(at: &Place, key: &str, default: &[State]) -> Result<BTreeSet<State>, Error> {
    let Some(value) = at.value.get(key) else {
        return Ok(default.iter().copied().collect());
    };
    let at = at.child(key, value);
    let mut states = BTreeSet::new();
    for (i, item) in at.array()?.iter().enumerate() {
        let at = at.child(&i.to_string(), item);
        let word = at.text()?;
        let Some(state) = State::of_word(word) else {
            return Err(at.wrong(
                "not_in_enum",
                "must be PASS, FAIL, INSUFFICIENT_EVIDENCE or MANUAL_REVIEW",
            ));
        };
        states.insert(state);
    }
    Ok(states)
}

fn rules(at: &Place) -> Result<Vec<Rule>, Error> {
    let Some(value) = at.value.get("rules") else {
        return Err(at.missing("rules"));
    };
    let at = at.child("rules", value);
    let items = at.array()?;
    if items.is_empty() {
        return Err(at.wrong("empty", "must hold at least one rule"));
    }
    let mut rules: Vec<Rule> = Vec::with_capacity(items.len());
    for (i, item) in items.iter().enumerate() {
        let at = at.child(&i.to_string(), item);
        let rule = rule(&at)?;
        if rules.iter().any(|known| known.id == rule.id) {
            let what = format!("repeats the id `{}`; ids are unique", rule.id);
            return Err(at.at_key("id").wrong("duplicate_rule", &what));
        }
        rules.push(rule);
    }
    Ok(rules)
}

fn rule(at: &Place) -> Result<Rule, Error> {
    at.object(&RULE_KEYS)?;
    let id = at.required_text("id")?;
    let at = at.of_rule(&id);
    let metric = at.required_text("metric")?;
    let demand = demand(&at)?;
    let max_missing_fraction = match at.value.get("max_missing_fraction") {
        None | Some(Value::Null) => None,
        Some(value) => Some(missing_fraction(
            &at.child("max_missing_fraction", value),
            demand,
        )?),
    };
    Ok(Rule {
        id,
        metric,
        demand,
        requires_manual_review: at.flag("requires_manual_review", Some(false))?,
        max_missing_fraction,
    })
}

fn missing_fraction(at: &Place, demand: Demand) -> Result<f64, Error> {
    if let Demand::MaxFailures(_) = demand {
        return Err(at.wrong(
            "not_for_this_rule",
            "goes with `min` or `max`; a count of failures already counts missing cases",
        ));
    }
    let share = at.number()?;
    if (0.0..=1.0).contains(&share) {
        Ok(share)
    } else {
        Err(at.wrong("out_of_range", &rate_range(share)))
    }
}

fn demand(at: &Place) -> Result<Demand, Error> {
    let given: Vec<&str> = ["min", "max", "max_failures"]
        .into_iter()
        .filter(|key| at.value.get(*key).is_some_and(|value| !value.is_null()))
        .collect();
    let [key] = given[..] else {
        let found = if given.is_empty() {
            "none".to_owned()
        } else {
            given.join(" and ")
        };
        let what = format!("must have exactly one of min, max and max_failures, and has {found}");
        return Err(at.wrong("one_bound_needed", &what));
    };
    let place = at.at_key(key);
    let demand = match key {
        "min" => Demand::Min(place.number()?),
        "max" => Demand::Max(place.number()?),
        _ => Demand::MaxFailures(place.count()?),
    };
    let kind = match demand {
        Demand::MaxFailures(_) => "observed_count",
        Demand::Max(_) | Demand::Min(_) => "interval_threshold",
    };
    match at.value.get("kind") {
        None | Some(Value::Null) => {}
        Some(Value::String(word)) if word == kind => {}
        Some(_) => {
            let what = format!("must be `{kind}` beside `{key}`, or be left out");
            return Err(at.at_key("kind").wrong("kind_disagrees", &what));
        }
    }
    Ok(demand)
}

pub(super) fn rate_range(found: f64) -> String {
    let hint = if found > 1.0 && found <= 100.0 {
        format!("; {} percent is {}", found, found / 100.0)
    } else {
        String::new()
    };
    format!("must lie between 0 and 1 and is {found}{hint}")
}

/// A value with the place where it stands.
struct Place<'a> {
    value: &'a Value,
    pointer: String,
    rule: Option<String>,
}

impl<'a> Place<'a> {
    fn root(value: &'a Value) -> Self {
        Place {
            value,
            pointer: String::new(),
            rule: None,
        }
    }

    fn child(&self, key: &str, value: &'a Value) -> Place<'a> {
        let key = key.replace('~', "~0").replace('/', "~1");
        Place {
            value,
            pointer: format!("{}/{key}", self.pointer),
            rule: self.rule.clone(),
        }
    }

    fn at_key(&self, key: &str) -> Place<'a> {
        self.child(key, self.value.get(key).unwrap_or(&Value::Null))
    }

    fn of_rule(&self, id: &str) -> Place<'a> {
        Place {
            value: self.value,
            pointer: self.pointer.clone(),
            rule: Some(id.to_owned()),
        }
    }

    fn wrong(&self, code: &'static str, what: &str) -> Error {
        let place = ReadFrom::Policy(self.rule.clone());
        Error::new(place, code, self.pointer.as_str(), what)
    }

    fn missing(&self, key: &str) -> Error {
        self.at_key(key).wrong("missing_field", "is required")
    }

    fn object(&self, known: &[&str]) -> Result<&'a Map<String, Value>, Error> {
        let Value::Object(map) = self.value else {
            return Err(self.wrong("wrong_type", "must be a mapping of names to values"));
        };
        match map.keys().find(|key| !known.contains(&key.as_str())) {
            None => Ok(map),
            Some(key) => {
                let what = format!("is not known here; known are {}", known.join(", "));
                Err(self.at_key(key).wrong("unknown_field", &what))
            }
        }
    }

    fn array(&self) -> Result<&'a Vec<Value>, Error> {
        self.value
            .as_array()
            .ok_or_else(|| self.wrong("wrong_type", "must be a list"))
    }

    fn text(&self) -> Result<&'a str, Error> {
        self.value
            .as_str()
            .ok_or_else(|| self.wrong("wrong_type", "must be a text"))
    }

    fn required_text(&self, key: &str) -> Result<String, Error> {
        let at = self.at_key(key);
        if at.value.is_null() {
            return Err(self.missing(key));
        }
        match at.text()? {
            "" => Err(at.wrong("empty_string", "must not be empty")),
            text => Ok(text.to_owned()),
        }
    }

    /// A finite number; a text that reads as one counts as it.
    fn number(&self) -> Result<f64, Error> {
        let number = match self.value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.trim().parse().ok(),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        };
        number
            .filter(|number| number.is_finite())
            .ok_or_else(|| self.wrong("wrong_type", "must be a finite number"))
    }

    fn count(&self) -> Result<u64, Error> {
        let number = self.number()?;
        if number >= 0.0 && number.fract() == 0.0 && number <= 9_007_199_254_740_991.0 {
            Ok(number as u64)
        } else {
            Err(self.wrong("out_of_range", "must be a whole number, 0 or more"))
        }
    }

    fn flag(&self, key: &str, default: Option<bool>) -> Result<bool, Error> {
        match (self.value.get(key), default) {
            (None, Some(default)) => Ok(default),
            (Some(Value::Bool(flag)), _) => Ok(*flag),
            _ => Err(self
                .at_key(key)
                .wrong("wrong_type", "must be true or false")),
        }
    }
}

const POLICY_KEYS: [&str; 7] = [
    "version",
    "confidence_level",
    "block_on",
    "warn_on",
    "rules",
    "block_on_partial_run",
    "require_approval",
];

const RULE_KEYS: [&str; 8] = [
    "id",
    "metric",
    "kind",
    "min",
    "max",
    "max_failures",
    "requires_manual_review",
    "max_missing_fraction",
];
