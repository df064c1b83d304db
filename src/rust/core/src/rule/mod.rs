//! Release rules and policies: what is written, what is checked, what is decided.
//!
//! A policy is parsed at the door (`Policy::parse`); its rules are decided from
//! the facts of metrics (`Policy::decide`). Bounds come as numbers: intervals are
//! computed elsewhere.

mod read;

use crate::error::ReadFrom;
use read::rate_range;
use std::collections::BTreeSet;

/// What a metric measures; it settles which rules and thresholds make sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// A quantile of counts.
    Quantile,
    /// A share of cases.
    Rate,
}

/// What a rule demands of its metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Demand {
    /// The interval must lie at or below the number.
    Max(f64),
    /// At most so many failures, missing cases counted as what they could be.
    MaxFailures(u64),
    /// The interval must lie at or above the number.
    Min(f64),
}

/// One release rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// Unique within the policy; not empty.
    pub id: String,
    /// The metric it reads.
    pub metric: String,
    /// What it demands.
    pub demand: Demand,
    /// A person decides, whatever the numbers say.
    pub requires_manual_review: bool,
    /// Above this share of missing cases the bounds are not read.
    /// Invariant: in [0, 1].
    pub max_missing_fraction: Option<f64>,
}

/// The answer of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// The demand is broken.
    Fail,
    /// The data do not settle it.
    InsufficientEvidence,
    /// A person has to look.
    ManualReview,
    /// The demand is met.
    Pass,
}

impl State {
    /// The word used in files and results.
    pub fn word(self) -> &'static str {
        match self {
            State::Fail => "FAIL",
            State::InsufficientEvidence => "INSUFFICIENT_EVIDENCE",
            State::ManualReview => "MANUAL_REVIEW",
            State::Pass => "PASS",
        }
    }

    fn of_word(word: &str) -> Option<State> {
        STATES.into_iter().find(|state| state.word() == word)
    }
}

/// What follows for the release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// Nothing stands against it.
    Allow,
    /// Look, but go on.
    Warn,
    /// Do not release.
    Block,
}

impl Action {
    /// The word used in results.
    pub fn word(self) -> &'static str {
        match self {
            Action::Allow => "ALLOW",
            Action::Block => "BLOCK",
            Action::Warn => "WARN",
        }
    }
}

/// Whether the cases of a run are independent of each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dependence {
    /// No interval that is valid for these data is at hand.
    Unsupported,
    /// Cases, or groups of trials with an interval of their own.
    Supported,
}

/// The numbers of one metric that rules read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Facts {
    /// Rate or quantile.
    pub kind: MetricKind,
    /// Cases the metric applies to.
    pub n_eligible: u64,
    /// Cases with a verdict.
    pub n_observed: u64,
    /// Cases that failed; 0 for a quantile.
    pub n_failed: u64,
    /// Cases without a verdict.
    pub n_missing: u64,
    /// Whether an interval could be computed at all.
    pub has_interval: bool,
    /// Lower bound, if there is one.
    pub lower: Option<f64>,
    /// Upper bound, if there is one.
    pub upper: Option<f64>,
    /// Whether the interval is valid for how the cases hang together.
    pub dependence: Dependence,
}

/// Whether every case of the suite was run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Every case was run.
    Complete,
    /// The run was interrupted.
    Partial,
}

/// The decision of one rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The rule's id.
    pub rule_id: String,
    /// The metric it read.
    pub metric: String,
    /// The answer.
    pub state: State,
    /// Why, in the fixed order of the reasons.
    pub reasons: Vec<&'static str>,
    /// The bounds that were read, when an interval decided.
    pub decided: Option<(Option<f64>, Option<f64>)>,
    /// What follows from it.
    pub action: Action,
}

/// What all decisions come to.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    /// The strongest action.
    pub action: Action,
    /// Exit status for scripts.
    pub exit_code: u8,
    /// Reasons that belong to no single rule.
    pub reasons: Vec<&'static str>,
    /// One a rule, in the order of the policy.
    pub decisions: Vec<Decision>,
}

/// A checked release policy.
///
/// ```
/// use warrant_core::rule::Policy;
/// let text = br#"{"rules":[{"id":"floor","metric":"answer_correct","min":0.7}]}"#;
/// let policy = Policy::parse(&warrant_core::canon::parse(text).unwrap()).unwrap();
/// assert_eq!(policy.confidence_level, 0.95);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// Level of all intervals. Invariant: in (0, 1).
    pub confidence_level: f64,
    /// States that block. Invariant: disjoint from `warn_on`.
    pub block_on: BTreeSet<State>,
    /// States that warn.
    pub warn_on: BTreeSet<State>,
    /// Whether an interrupted run blocks.
    pub block_on_partial_run: bool,
    /// Whether a gate that nothing blocks still waits for a person.
    pub require_approval: bool,
    /// At least one.
    pub rules: Vec<Rule>,
}

impl Policy {
    /// Checks the rules against the metrics there are: `kind_of` knows a metric
    /// by its id.
    ///
    /// # Errors
    /// An unknown metric, a threshold no rate can have, or a count of failures
    /// asked of a quantile.
    pub fn check(&self, kind_of: impl Fn(&str) -> Option<MetricKind>) -> Result<(), Error> {
        for (i, rule) in self.rules.iter().enumerate() {
            let wrong = |field: &str, code, what: String| {
                let place = ReadFrom::Policy(Some(rule.id.clone()));
                Error::new(place, code, format!("/rules/{i}/{field}"), what)
            };
            let Some(kind) = kind_of(&rule.metric) else {
                let what = format!("names no metric of this suite: `{}`", rule.metric);
                return Err(wrong("metric", "unknown_metric", what));
            };
            match (rule.demand, kind) {
                (Demand::MaxFailures(_), MetricKind::Quantile) => {
                    let what = "needs a rate; this metric is a quantile".to_owned();
                    return Err(wrong("max_failures", "rate_needed", what));
                }
                (Demand::Min(t), MetricKind::Rate) if !(0.0..=1.0).contains(&t) => {
                    return Err(wrong("min", "out_of_range", rate_range(t)));
                }
                (Demand::Max(t), MetricKind::Rate) if !(0.0..=1.0).contains(&t) => {
                    return Err(wrong("max", "out_of_range", rate_range(t)));
                }
                (_, MetricKind::Rate | MetricKind::Quantile) => {}
            }
        }
        Ok(())
    }

    /// Decides every rule and the gate. `facts_of` gives the numbers of a metric.
    ///
    /// # Errors
    /// As [`Policy::check`].
    pub fn decide(
        &self,
        facts_of: impl Fn(&str) -> Option<Facts>,
        extent: Extent,
    ) -> Result<Gate, Error> {
        self.check(|metric| facts_of(metric).map(|facts| facts.kind))?;
        let mut decisions = Vec::with_capacity(self.rules.len());
        let mut missing_evidence = false;
        for rule in &self.rules {
            let Some(facts) = facts_of(&rule.metric) else {
                continue;
            };
            let (state, reasons, decided) = rule.decide(&facts);
            let withheld = reasons
                .iter()
                .any(|reason| matches!(*reason, NO_OBSERVATIONS | TOO_MUCH_MISSING));
            let action = if self.block_on.contains(&state) {
                Action::Block
            } else if withheld {
                missing_evidence = true;
                Action::Block
            } else if self.warn_on.contains(&state) {
                Action::Warn
            } else {
                Action::Allow
            };
            decisions.push(Decision {
                rule_id: rule.id.clone(),
                metric: rule.metric.clone(),
                state,
                reasons,
                decided,
                action,
            });
        }
        Ok(self.gate(decisions, missing_evidence, extent))
    }

    fn gate(&self, decisions: Vec<Decision>, missing_evidence: bool, extent: Extent) -> Gate {
        let partial = extent == Extent::Partial && self.block_on_partial_run;
        let blocked = |state| {
            decisions
                .iter()
                .any(|d| d.action == Action::Block && d.state == state)
        };
        let mut reasons = Vec::new();
        if missing_evidence {
            reasons.push("missing_evidence");
        }
        if partial {
            reasons.push("partial_run");
        }
        let mut action = decisions
            .iter()
            .map(|d| d.action)
            .max()
            .unwrap_or(Action::Allow);
        if partial {
            action = Action::Block;
        }
        let exit_code = if blocked(State::Fail) {
            1
        } else if partial {
            5
        } else if blocked(State::ManualReview) {
            4
        } else if blocked(State::InsufficientEvidence) {
            3
        } else if self.require_approval && action != Action::Block {
            reasons.push("approval_required");
            6
        } else {
            0
        };
        Gate {
            action,
            exit_code,
            reasons,
            decisions,
        }
    }
}

type Answer = (State, Vec<&'static str>, Option<(Option<f64>, Option<f64>)>);

impl Rule {
    /// Three tiers; the first with a reason decides.
    fn decide(&self, facts: &Facts) -> Answer {
        let review = self.review_reasons(facts);
        if !review.is_empty() {
            return (State::ManualReview, review, None);
        }
        let withheld = self.withheld_reasons(facts);
        if !withheld.is_empty() {
            return (State::InsufficientEvidence, withheld, None);
        }
        let bounds = Some((facts.lower, facts.upper));
        match self.demand {
            Demand::Max(t) => {
                let (state, reason) = max_verdict(facts.lower, facts.upper, t);
                (state, vec![reason], bounds)
            }
            Demand::MaxFailures(limit) => {
                let (state, reason) = failures_verdict(facts, limit);
                (state, vec![reason], None)
            }
            Demand::Min(t) => {
                let (state, reason) = min_verdict(facts.lower, facts.upper, t);
                (state, vec![reason], bounds)
            }
        }
    }

    fn reads_interval(&self) -> bool {
        match self.demand {
            Demand::Max(_) | Demand::Min(_) => true,
            Demand::MaxFailures(_) => false,
        }
    }

    fn review_reasons(&self, facts: &Facts) -> Vec<&'static str> {
        let mut reasons = Vec::new();
        if self.requires_manual_review {
            reasons.push("policy_requires_review");
        }
        if self.reads_interval() && facts.dependence == Dependence::Unsupported {
            reasons.push("unsupported_dependence_structure");
        }
        reasons
    }

    fn withheld_reasons(&self, facts: &Facts) -> Vec<&'static str> {
        let mut reasons = Vec::new();
        if facts.n_observed == 0 {
            reasons.push(NO_OBSERVATIONS);
        }
        if let Some(most) = self.max_missing_fraction {
            // Counts of cases are far below 2^53: the quotient is correctly rounded.
            let share = facts.n_missing as f64 / facts.n_eligible as f64;
            if facts.n_eligible > 0 && share > most {
                reasons.push(TOO_MUCH_MISSING);
            }
        }
        let unbounded = facts.lower.is_none() && facts.upper.is_none();
        if self.reads_interval() && (!facts.has_interval || unbounded) {
            reasons.push("interval_unavailable");
        }
        reasons
    }
}

/// The verdict of a `min` rule on bounds, plain floating point.
pub fn min_verdict(
    lower: Option<f64>,
    upper: Option<f64>,
    threshold: f64,
) -> (State, &'static str) {
    if lower.is_some_and(|lower| lower >= threshold) {
        (State::Pass, "lower_bound_meets_minimum")
    } else if upper.is_some_and(|upper| upper < threshold) {
        (State::Fail, "upper_bound_below_minimum")
    } else {
        undecided(lower, upper)
    }
}

/// The verdict of a `max` rule on bounds, plain floating point.
pub fn max_verdict(
    lower: Option<f64>,
    upper: Option<f64>,
    threshold: f64,
) -> (State, &'static str) {
    if upper.is_some_and(|upper| upper <= threshold) {
        (State::Pass, "upper_bound_meets_maximum")
    } else if lower.is_some_and(|lower| lower > threshold) {
        (State::Fail, "lower_bound_above_maximum")
    } else {
        undecided(lower, upper)
    }
}

fn undecided(lower: Option<f64>, upper: Option<f64>) -> (State, &'static str) {
    let reason = if lower.is_none() || upper.is_none() {
        "interval_unbounded"
    } else {
        "interval_overlaps_threshold"
    };
    (State::InsufficientEvidence, reason)
}

fn failures_verdict(facts: &Facts, limit: u64) -> (State, &'static str) {
    if facts.n_failed > limit {
        (State::Fail, "observed_failures_exceed_limit")
    } else if facts.n_failed.saturating_add(facts.n_missing) <= limit {
        (State::Pass, "observed_failures_within_limit")
    } else {
        (State::InsufficientEvidence, "missing_could_change_outcome")
    }
}

pub use crate::error::Broken as Error;

const NO_OBSERVATIONS: &str = "no_observations";
const TOO_MUCH_MISSING: &str = "missingness_exceeds_policy";

/// The first three block unless the policy says otherwise.
const STATES: [State; 4] = [
    State::Fail,
    State::InsufficientEvidence,
    State::ManualReview,
    State::Pass,
];

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn policy(extra: &str) -> Result<Policy, Error> {
        let text = format!(r#"{{"rules":[{{"id":"r","metric":"m",{extra}}}]}}"#);
        Policy::parse(&crate::canon::parse(text.as_bytes()).unwrap())
    }

    fn facts(passed: u64, failed: u64, missing: u64, bounds: (f64, f64)) -> Facts {
        Facts {
            kind: MetricKind::Rate,
            n_eligible: passed + failed + missing,
            n_observed: passed + failed,
            n_failed: failed,
            n_missing: missing,
            has_interval: true,
            lower: Some(bounds.0),
            upper: Some(bounds.1),
            dependence: Dependence::Supported,
        }
    }

    fn decide(policy: &Policy, facts: Facts) -> Gate {
        policy.decide(|_| Some(facts), Extent::Complete).unwrap()
    }

    #[test]
    fn a_policy_is_refused_with_code_and_pointer() {
        let table = [
            (r#""min":0.5,"max":0.6"#, "one_bound_needed", "/rules/0"),
            (r#""kind":"observed_count""#, "one_bound_needed", "/rules/0"),
            (r#""min":0.5,"note":"x""#, "unknown_field", "/rules/0/note"),
            (r#""min":"a""#, "wrong_type", "/rules/0/min"),
            (r#""min":true"#, "wrong_type", "/rules/0/min"),
            (
                r#""max_failures":-1"#,
                "out_of_range",
                "/rules/0/max_failures",
            ),
            (
                r#""max_failures":0.5"#,
                "out_of_range",
                "/rules/0/max_failures",
            ),
            (
                r#""max_failures":0,"kind":"interval_threshold""#,
                "kind_disagrees",
                "/rules/0/kind",
            ),
            (
                r#""max_failures":0,"max_missing_fraction":0.1"#,
                "not_for_this_rule",
                "/rules/0/max_missing_fraction",
            ),
            (
                r#""min":0.5,"max_missing_fraction":1.1"#,
                "out_of_range",
                "/rules/0/max_missing_fraction",
            ),
            (
                r#""min":0.5,"requires_manual_review":1"#,
                "wrong_type",
                "/rules/0/requires_manual_review",
            ),
        ];
        for (extra, code, field) in table {
            let error = policy(extra).unwrap_err();
            assert_eq!(
                (error.code, error.pointer.as_str()),
                (code, field),
                "{extra}"
            );
        }
    }

    #[test]
    fn whole_policies_are_refused_with_code_and_pointer() {
        let rule = r#"{"id":"r","metric":"m","min":0.5}"#;
        let table = [
            ("[]".to_owned(), "wrong_type", ""),
            ("{}".to_owned(), "missing_field", "/rules"),
            (r#"{"rules":[]}"#.to_owned(), "empty", "/rules"),
            (
                format!(r#"{{"rules":[{rule},{rule}]}}"#),
                "duplicate_rule",
                "/rules/1/id",
            ),
            (
                format!(r#"{{"rules":[{rule}],"confidence_level":95}}"#),
                "out_of_range",
                "/confidence_level",
            ),
            (
                format!(r#"{{"rules":[{rule}],"block_on":["fail"]}}"#),
                "not_in_enum",
                "/block_on/0",
            ),
            (
                format!(r#"{{"rules":[{rule}],"warn_on":["FAIL"]}}"#),
                "states_overlap",
                "/warn_on",
            ),
            (
                format!(r#"{{"rules":[{rule}],"version":2}}"#),
                "out_of_range",
                "/version",
            ),
        ];
        for (text, code, field) in table {
            let value = crate::canon::parse(text.as_bytes()).unwrap();
            let error = Policy::parse(&value).unwrap_err();
            assert_eq!(
                (error.code, error.pointer.as_str()),
                (code, field),
                "{text}"
            );
        }
    }

    #[test]
    fn a_percentage_is_refused_with_a_hint() {
        let error = policy(r#""min":80"#)
            .unwrap()
            .check(|_| Some(MetricKind::Rate))
            .unwrap_err();
        assert!(error.to_string().contains("80 percent is 0.8"), "{error}");
    }

    #[test]
    fn a_count_of_failures_needs_a_rate() {
        let policy = policy(r#""max_failures":0"#).unwrap();
        let error = policy.check(|_| Some(MetricKind::Quantile)).unwrap_err();
        assert_eq!(error.code, "rate_needed");
        assert_eq!(policy.check(|_| None).unwrap_err().code, "unknown_metric");
    }

    #[test]
    fn equality_meets_a_threshold() {
        let one = Some(1.0);
        assert_eq!(min_verdict(one, one, 1.0).0, State::Pass);
        assert_eq!(max_verdict(one, one, 1.0).0, State::Pass);
        assert_eq!(min_verdict(None, one, 1.0).1, "interval_unbounded");
        assert_eq!(max_verdict(one, None, 0.5).0, State::Fail);
    }

    #[test]
    fn the_first_tier_with_a_reason_lists_all_its_reasons() {
        let nothing = Facts {
            n_observed: 0,
            has_interval: false,
            lower: None,
            upper: None,
            ..facts(0, 0, 5, (0.0, 1.0))
        };
        let gate = decide(
            &policy(r#""min":0.5,"max_missing_fraction":0.2"#).unwrap(),
            nothing,
        );
        assert_eq!(
            gate.decisions[0].reasons,
            [NO_OBSERVATIONS, TOO_MUCH_MISSING, "interval_unavailable"]
        );
        assert_eq!(gate.decisions[0].decided, None);
        let reviewed = policy(r#""min":0.5,"requires_manual_review":true"#).unwrap();
        assert_eq!(
            decide(&reviewed, nothing).decisions[0].reasons,
            ["policy_requires_review"]
        );
    }

    #[test]
    fn grouped_trials_without_a_valid_interval_go_to_a_person() {
        let grouped = Facts {
            dependence: Dependence::Unsupported,
            ..facts(5, 0, 0, (0.0, 1.0))
        };
        let gate = decide(&policy(r#""min":0.5"#).unwrap(), grouped);
        assert_eq!(
            gate.decisions[0].reasons,
            ["unsupported_dependence_structure"]
        );
        assert_eq!(gate.exit_code, 4);
        assert_eq!(
            decide(&policy(r#""max_failures":0"#).unwrap(), grouped).exit_code,
            0
        );
    }

    #[test]
    fn missing_cases_could_be_failures() {
        let table = [
            (3, 0, State::Fail, "observed_failures_exceed_limit"),
            (2, 0, State::Pass, "observed_failures_within_limit"),
            (1, 1, State::Pass, "observed_failures_within_limit"),
            (
                2,
                1,
                State::InsufficientEvidence,
                "missing_could_change_outcome",
            ),
        ];
        let policy = policy(r#""max_failures":2"#).unwrap();
        for (failed, missing, state, reason) in table {
            let gate = decide(&policy, facts(9, failed, missing, (0.0, 1.0)));
            assert_eq!(gate.decisions[0].state, state);
            assert_eq!(gate.decisions[0].reasons, [reason]);
            assert_eq!(gate.decisions[0].decided, None);
        }
    }

    #[test]
    fn missing_evidence_blocks_what_the_policy_lets_through() {
        let mut policy = policy(r#""min":0.5,"max_missing_fraction":0.2"#).unwrap();
        policy.block_on.clear();
        let gate = decide(&policy, facts(4, 0, 4, (0.1, 1.0)));
        assert_eq!((gate.action, gate.exit_code), (Action::Block, 3));
        assert_eq!(gate.reasons, ["missing_evidence"]);
        policy.rules[0].max_missing_fraction = None;
        let gate = decide(&policy, facts(4, 0, 4, (0.1, 1.0)));
        assert_eq!((gate.action, gate.exit_code), (Action::Allow, 0));
    }

    #[test]
    fn exit_codes_take_the_strongest() {
        let mut policy = policy(r#""min":0.5"#).unwrap();
        let good = facts(9, 0, 0, (0.6, 1.0));
        let partial = |policy: &Policy, facts: Facts| {
            policy.decide(|_| Some(facts), Extent::Partial).unwrap()
        };
        assert_eq!(partial(&policy, good).exit_code, 5);
        assert_eq!(partial(&policy, good).action, Action::Block);
        assert_eq!(partial(&policy, facts(0, 9, 0, (0.0, 0.3))).exit_code, 1);
        policy.block_on_partial_run = false;
        assert_eq!(partial(&policy, good).exit_code, 0);
        policy.require_approval = true;
        assert_eq!(decide(&policy, good).exit_code, 6);
        assert_eq!(decide(&policy, good).reasons, ["approval_required"]);
        policy.warn_on.insert(State::Pass);
        assert_eq!(decide(&policy, good).action, Action::Warn);
    }
}
