//! What a criterion says about a case.

/// Three values and a fourth: a case that declares nothing about a criterion is
/// excluded from its denominator; one that cannot be decided stays in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The case does not enter.
    Excluded(Reason),
    /// The criterion is not met.
    Fail,
    /// Nothing that was recorded decides; read as "could be either".
    Missing(Reason),
    /// The criterion is met.
    Pass,
}

impl Verdict {
    /// Pass when it holds, else fail.
    pub fn of(holds: bool) -> Self {
        if holds {
            Verdict::Pass
        } else {
            Verdict::Fail
        }
    }

    /// The verdict when a prefix already decides; a prefix that does not is
    /// missing.
    pub fn decided(truncated: bool, settled: bool, holds: bool) -> Self {
        if truncated && !settled {
            Verdict::Missing(Reason::TruncatedTrajectory)
        } else {
            Verdict::of(holds)
        }
    }

    /// A small number for a column: see [`table`].
    pub fn code(self) -> u16 {
        match self {
            Verdict::Pass => 0,
            Verdict::Fail => 1,
            Verdict::Missing(reason) => 2 + reason as u16,
            Verdict::Excluded(reason) => 2 + REASONS.len() as u16 + reason as u16,
        }
    }

    /// The word of the verdict.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Excluded(_) => "excluded",
            Verdict::Fail => "fail",
            Verdict::Missing(_) => "missing",
            Verdict::Pass => "pass",
        }
    }
}

/// What each code of [`Verdict::code`] stands for, in order: the word and the
/// reason (empty for a pass or a fail).
pub fn table() -> Vec<(&'static str, &'static str)> {
    let words = |word| REASONS.iter().map(move |reason| (word, reason.code()));
    [("pass", ""), ("fail", "")]
        .into_iter()
        .chain(words("missing"))
        .chain(words("excluded"))
        .collect()
}

/// Why a case is missing or excluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Reason {
    EvaluatorError,
    InvalidTrajectory,
    MissingAgentConstraints,
    MissingOutputField,
    NoAgentConstraints,
    NoAgentIdentity,
    NoAnswer,
    NoDeclaredRoute,
    NoDeclaredTools,
    NoExpected,
    NoOutput,
    NoTrajectory,
    NotRun,
    SeveralTrajectories,
    SystemError,
    SystemTimeout,
    TruncatedTrajectory,
}

const REASONS: [Reason; 17] = [
    Reason::EvaluatorError,
    Reason::InvalidTrajectory,
    Reason::MissingAgentConstraints,
    Reason::MissingOutputField,
    Reason::NoAgentConstraints,
    Reason::NoAgentIdentity,
    Reason::NoAnswer,
    Reason::NoDeclaredRoute,
    Reason::NoDeclaredTools,
    Reason::NoExpected,
    Reason::NoOutput,
    Reason::NoTrajectory,
    Reason::NotRun,
    Reason::SeveralTrajectories,
    Reason::SystemError,
    Reason::SystemTimeout,
    Reason::TruncatedTrajectory,
];

impl Reason {
    /// The stable code.
    pub fn code(self) -> &'static str {
        match self {
            Reason::EvaluatorError => "evaluator_error",
            Reason::InvalidTrajectory => "invalid_trajectory",
            Reason::MissingAgentConstraints => "missing_agent_constraints",
            Reason::MissingOutputField => "missing_output_field",
            Reason::NoAgentConstraints => "no_agent_constraints",
            Reason::NoAgentIdentity => "no_agent_identity",
            Reason::NoAnswer => "no_answer",
            Reason::NoDeclaredRoute => "no_declared_route",
            Reason::NoDeclaredTools => "no_declared_tools",
            Reason::NoExpected => "no_expected",
            Reason::NoOutput => "no_output",
            Reason::NoTrajectory => "no_trajectory",
            Reason::NotRun => "not_run",
            Reason::SeveralTrajectories => "several_trajectories",
            Reason::SystemError => "system_error",
            Reason::SystemTimeout => "system_timeout",
            Reason::TruncatedTrajectory => "truncated_trajectory",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_leads_back_to_its_verdict() {
        let table = table();
        assert_eq!(table[usize::from(Verdict::Pass.code())], ("pass", ""));
        assert_eq!(table[usize::from(Verdict::Fail.code())], ("fail", ""));
        for reason in REASONS {
            for verdict in [Verdict::Missing(reason), Verdict::Excluded(reason)] {
                let row = table[usize::from(verdict.code())];
                assert_eq!(row, (verdict.word(), reason.code()));
            }
        }
    }

    #[test]
    fn a_prefix_decides_only_what_is_settled() {
        let missing = Verdict::Missing(Reason::TruncatedTrajectory);
        assert_eq!(Verdict::decided(true, false, true), missing);
        assert_eq!(Verdict::decided(true, true, false), Verdict::Fail);
        assert_eq!(Verdict::decided(false, false, true), Verdict::Pass);
    }
}
