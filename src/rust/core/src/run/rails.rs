//! Guardrails: what they are asked, and what becomes of their findings. They look
//! before anything happens, so every action of a step is checked before one starts.

use super::effect::{Check, Clock, Finding};
use super::machine::Machine;
use super::setup::Error;
use super::state::Phase;
use super::step::Progress;
use crate::event::{Guardrail, GuardrailVerdict, Stage, StopReason};

impl Machine {
    /// What the guardrails said of the goal. A block ends the run.
    ///
    /// # Errors
    /// When they were not asked.
    pub fn goal_checked(&mut self, findings: Vec<Finding>, clock: Clock) -> Result<(), Error> {
        if !matches!(self.log.state.phase(), Phase::Ready) {
            return Err(Error::Misuse {
                what: "a finding on the goal",
            });
        }
        self.goal_checked = true;
        self.end_where_blocked(Stage::Input, findings, clock)
    }

    /// What they said of the answer. A block ends the run.
    ///
    /// # Errors
    /// When they were not asked.
    pub fn answer_checked(&mut self, findings: Vec<Finding>, clock: Clock) -> Result<(), Error> {
        if !matches!(self.log.state.phase(), Phase::Answering(_)) {
            return Err(Error::Misuse {
                what: "a finding on the answer",
            });
        }
        self.answer_checked = true;
        self.end_where_blocked(Stage::Output, findings, clock)
    }

    /// What they said of an action, before it starts or of its result. A block
    /// refuses what has not started; what ran is withheld by whoever hands in its end.
    ///
    /// # Errors
    /// When there is no such action, or it has ended.
    pub fn action_checked(
        &mut self,
        action: u64,
        findings: Vec<Finding>,
        clock: Clock,
    ) -> Result<(), Error> {
        let index = usize::try_from(action).unwrap_or(usize::MAX);
        let blocked = self.record_findings(Some(action), Stage::Tool, findings, clock)?;
        self.checked.insert(index);
        if let Some(why) = blocked {
            self.blocked_by.insert(index, why);
        }
        Ok(())
    }

    pub(super) fn must_check_goal(&self) -> bool {
        let state = &self.log.state;
        self.setup.looks_at(Stage::Input) && state.used().steps == 0 && !self.goal_checked
    }

    pub(super) fn must_check_answer(&self) -> bool {
        self.setup.looks_at(Stage::Output) && !self.answer_checked
    }

    pub(super) fn to_check(&self, index: usize) -> Option<Check> {
        let step = self.log.state.step()?;
        let used = self.log.state.used();
        let mut called: Vec<String> = used.per_tool.keys().cloned().collect();
        for before in &step.actions[..index] {
            let may_run = !matches!(before.progress, Progress::Ended(_));
            if may_run && !called.contains(&before.tool) {
                called.push(before.tool.clone());
            }
        }
        Some(Check::Action {
            action: index as u64,
            arguments: self.values.get(index)?.clone(),
            called,
            tool: step.actions.get(index)?.tool.clone(),
        })
    }

    fn end_where_blocked(
        &mut self,
        stage: Stage,
        findings: Vec<Finding>,
        clock: Clock,
    ) -> Result<(), Error> {
        match self.record_findings(None, stage, findings, clock)? {
            None => Ok(()),
            Some(why) => {
                let text = self.log.keep_text(&why);
                self.finish(Some(StopReason::GuardrailBlocked), Some(text), clock)
            }
        }
    }

    /// Records each finding; gives the words of the first that blocks.
    fn record_findings(
        &mut self,
        action: Option<u64>,
        stage: Stage,
        findings: Vec<Finding>,
        clock: Clock,
    ) -> Result<Option<String>, Error> {
        let step = self.log.state.used().steps;
        let mut blocked = None;
        for finding in findings {
            let said = finding.words();
            let tell = finding.text.is_some() || finding.verdict == GuardrailVerdict::Warn;
            let text = tell.then(|| self.log.keep_text(&said));
            let record = Guardrail {
                action,
                name: finding.name,
                stage,
                step,
                text,
                verdict: finding.verdict,
            };
            self.log.record(record, clock)?;
            if finding.verdict == GuardrailVerdict::Block {
                blocked.get_or_insert(said);
            }
        }
        Ok(blocked)
    }
}

impl Finding {
    fn words(&self) -> String {
        let did = match self.verdict {
            GuardrailVerdict::Block => "refused",
            GuardrailVerdict::Flag => "noted",
            GuardrailVerdict::Pass => "let it pass",
            GuardrailVerdict::Warn => "warns",
        };
        match &self.text {
            Some(text) => format!("The guardrail `{}` {did}: {text}", self.name),
            None => format!("The guardrail `{}` {did}.", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_said_with_its_name_and_reason() {
        let words = |verdict, text: Option<&str>| {
            let text = text.map(str::to_owned);
            let name = "r".to_owned();
            Finding {
                name,
                text,
                verdict,
            }
            .words()
        };
        let block = GuardrailVerdict::Block;
        assert_eq!(words(block, Some("no")), "The guardrail `r` refused: no");
        assert_eq!(words(block, None), "The guardrail `r` refused.");
        let warn = GuardrailVerdict::Warn;
        assert_eq!(words(warn, Some("so")), "The guardrail `r` warns: so");
    }
}
