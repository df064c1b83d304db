//! Answers of chat endpoints, read without losing a byte of what a tool call says.
//!
//! Arguments are handed on as text: the one of an OpenAI-compatible endpoint is
//! a JSON string, which is decoded; Anthropic's, and that of servers that send an
//! object, is the slice of the answer. So integers beyond 2^53, repeated names and
//! broken JSON reach the reader of arguments, which knows what to say of them.

use crate::error::{Fault, Kind};
use serde::Deserialize;
use serde_json::error::Category;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// What an assistant answered.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reply {
    /// What it says, if anything.
    pub text: Option<String>,
    /// The calls it asks for, in order.
    pub calls: Vec<Call>,
    /// The model that served, as the endpoint names it.
    pub model: Option<String>,
    /// Why it stopped, in the endpoint's word.
    pub finish: Option<String>,
    /// What it took, where that is reported.
    pub usage: Usage,
    /// Blocks of thought that must go back with the calls: a JSON array.
    pub thinking: Option<String>,
}

/// A call that a model asks for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Call {
    /// The endpoint's label; not unique.
    pub id: String,
    /// The name of a tool, as the model gave it.
    pub name: String,
    /// The text of the arguments; `{}` where the member is left out or empty.
    pub arguments: String,
    /// What the endpoint wants back with this call, as JSON.
    pub extra: Option<String>,
}

/// What an answer took.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Usage {
    /// Tokens read, cached ones too.
    pub input: Option<f64>,
    /// Tokens written.
    pub output: Option<f64>,
    /// All of them, where the endpoint adds up.
    pub total: Option<f64>,
    /// The price, where the endpoint names it.
    pub cost: Option<f64>,
}

/// Reads the answer of an OpenAI-compatible endpoint.
///
/// # Errors
/// [`Error`], with what is wrong.
pub fn read_openai(body: &str) -> Result<Reply, Error> {
    let body: OpenAiBody = read(body)?;
    refused(body.error)?;
    let choice = body.choices.unwrap_or_default().into_iter().next();
    let message = choice.as_ref().and_then(|c| c.message.as_ref());
    let (Some(choice), Some(message)) = (&choice, message) else {
        return Err(Error::NoChoices);
    };
    let calls = message.tool_calls.iter().flatten();
    let usage: OpenAiUsage = lenient(body.usage);
    Ok(Reply {
        text: words(message.content).or_else(|| words(message.refusal)),
        calls: calls.map(OpenAiCall::call).collect(),
        model: text(body.model),
        finish: text(choice.finish_reason),
        usage: Usage {
            input: usage.prompt_tokens,
            output: usage.completion_tokens,
            total: usage.total_tokens,
            cost: usage.cost,
        },
        thinking: None,
    })
}

/// Reads the answer of Anthropic's endpoint.
///
/// # Errors
/// [`Error`], with what is wrong.
pub fn read_anthropic(body: &str) -> Result<Reply, Error> {
    let body: AnthropicBody = read(body)?;
    refused(body.error)?;
    let blocks = body.content.ok_or(Error::NoChoices)?;
    let mut reply = Reply {
        model: text(body.model),
        finish: text(body.stop_reason),
        ..Reply::default()
    };
    let mut thinking = Vec::new();
    for raw in blocks {
        let block: Block = serde_json::from_str(raw.get()).map_err(|e| shape(&e))?;
        match block.kind {
            "text" => reply
                .text
                .get_or_insert_default()
                .push_str(block.text.as_deref().unwrap_or_default()),
            "tool_use" => reply.calls.push(Call {
                id: text(block.id).unwrap_or_default(),
                name: text(block.name).unwrap_or_default(),
                arguments: arguments(block.input),
                extra: None,
            }),
            "thinking" | "redacted_thinking" => thinking.push(raw.get()),
            _ => {}
        }
    }
    if !thinking.is_empty() {
        reply.thinking = Some(format!("[{}]", thinking.join(",")));
    }
    let usage: AnthropicUsage = lenient(body.usage);
    let read = usage.input_tokens.map(|input| {
        input
            + usage.cache_creation_input_tokens.unwrap_or(0.0)
            + usage.cache_read_input_tokens.unwrap_or(0.0)
    });
    reply.usage = Usage {
        input: read,
        output: usage.output_tokens,
        total: None,
        cost: None,
    };
    Ok(reply)
}

#[derive(Deserialize)]
struct OpenAiBody<'a> {
    #[serde(borrow)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    message: Option<Message<'a>>,
    #[serde(borrow)]
    finish_reason: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    refusal: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_calls: Option<Vec<OpenAiCall<'a>>>,
}

#[derive(Deserialize)]
struct OpenAiCall<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    function: Option<Function<'a>>,
    #[serde(borrow)]
    extra_content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

impl OpenAiCall<'_> {
    fn call(&self) -> Call {
        let function = self.function.as_ref();
        Call {
            id: text(self.id).unwrap_or_default(),
            name: text(function.and_then(|f| f.name)).unwrap_or_default(),
            arguments: arguments(function.and_then(|f| f.arguments)),
            extra: self.extra_content.map(|raw| raw.get().to_owned()),
        }
    }
}

#[derive(Deserialize, Default)]
struct OpenAiUsage {
    prompt_tokens: Option<f64>,
    completion_tokens: Option<f64>,
    total_tokens: Option<f64>,
    cost: Option<f64>,
}

#[derive(Deserialize)]
struct AnthropicBody<'a> {
    #[serde(borrow)]
    content: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    stop_reason: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    text: Option<String>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
struct AnthropicUsage {
    input_tokens: Option<f64>,
    output_tokens: Option<f64>,
    cache_creation_input_tokens: Option<f64>,
    cache_read_input_tokens: Option<f64>,
}

fn read<'a, T: Deserialize<'a>>(body: &'a str) -> Result<T, Error> {
    serde_json::from_str(body).map_err(|e| match e.classify() {
        Category::Eof => Error::Cut,
        Category::Io | Category::Syntax => Error::NotJson,
        Category::Data if body.trim_start().starts_with('{') => shape(&e),
        Category::Data => Error::NotJson,
    })
}

fn shape(error: &serde_json::Error) -> Error {
    Error::Shape {
        what: error.to_string(),
    }
}

fn refused(error: Option<&RawValue>) -> Result<(), Error> {
    let Some(raw) = error.filter(|raw| raw.get() != "null") else {
        return Ok(());
    };
    let value: Value = serde_json::from_str(raw.get()).unwrap_or(Value::Null);
    let said = value.get("message").unwrap_or(&value);
    let said = said
        .as_str()
        .map_or_else(|| said.to_string(), str::to_owned);
    let status = value.get("code").and_then(Value::as_u64);
    Err(Error::Refused { said, status })
}

/// The text of a member that should be a string.
fn text(raw: Option<&RawValue>) -> Option<String> {
    serde_json::from_str(raw?.get()).ok()
}

/// What a message says: a string, or the texts of its parts.
fn words(raw: Option<&RawValue>) -> Option<String> {
    #[derive(Deserialize)]
    struct Part {
        text: Option<String>,
    }
    let raw = raw?;
    text(Some(raw)).or_else(|| {
        let parts: Vec<Part> = serde_json::from_str(raw.get()).ok()?;
        let texts: Vec<String> = parts.into_iter().filter_map(|p| p.text).collect();
        (!texts.is_empty()).then(|| texts.concat())
    })
}

/// The text of arguments: of a JSON string what it says, of anything else the slice.
fn arguments(raw: Option<&RawValue>) -> String {
    let Some(raw) = raw.map(RawValue::get).filter(|raw| *raw != "null") else {
        return NO_ARGUMENTS.to_owned();
    };
    let said = if raw.starts_with('"') {
        serde_json::from_str(raw).unwrap_or_else(|_| raw.to_owned())
    } else {
        raw.to_owned()
    };
    if said.trim().is_empty() {
        NO_ARGUMENTS.to_owned()
    } else {
        said
    }
}

fn lenient<'a, T: Deserialize<'a> + Default>(raw: Option<&'a RawValue>) -> T {
    let read = raw.and_then(|raw| serde_json::from_str(raw.get()).ok());
    read.unwrap_or_default()
}

const NO_ARGUMENTS: &str = "{}";

/// What can be wrong with an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text ends too early.
    #[error("the answer ends in the middle")]
    Cut,
    /// There is no message in it.
    #[error("the answer holds no message")]
    NoChoices,
    /// It is no JSON object.
    #[error("the answer is not JSON")]
    NotJson,
    /// The endpoint says that it failed, in an answer that says it did not.
    #[error("the endpoint reports an error: {said}")]
    Refused {
        /// What it says.
        said: String,
        /// Its number for it.
        status: Option<u64>,
    },
    /// A member is not what it must be.
    #[error("the answer does not have the form of a chat answer: {what}")]
    Shape {
        /// What is wrong.
        what: String,
    },
}

impl Fault for Error {
    fn code(&self) -> &'static str {
        match self {
            Error::Cut => "model_answer_cut",
            Error::NoChoices => "model_no_choices",
            Error::NotJson => "model_not_json",
            Error::Refused { .. } => "model_refused",
            Error::Shape { .. } => "model_answer_form",
        }
    }
    fn kind(&self) -> Kind {
        Kind::Model
    }
    fn facts(&self) -> Map<String, Value> {
        let mut facts = Map::new();
        if let Error::Refused {
            status: Some(status),
            ..
        } = self
        {
            facts.insert("status".to_owned(), Value::from(*status));
        }
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn openai(message: &str) -> Reply {
        let body = format!(r#"{{"choices":[{{"message":{message},"finish_reason":"stop"}}]}}"#);
        read_openai(&body).unwrap()
    }

    fn asked(arguments: &str) -> String {
        let message = format!(
            r#"{{"content":null,"tool_calls":[{{"id":"a","function":{{"name":"f"{arguments}}}}}]}}"#
        );
        openai(&message).calls[0].arguments.clone()
    }

    #[test]
    fn arguments_are_the_text_that_was_sent() {
        assert_eq!(
            asked(r#","arguments":"{\"id\":76561198003753554,\"id\":1}""#),
            r#"{"id":76561198003753554,"id":1}"#
        );
        assert_eq!(asked(r#","arguments":"{\"x\": 1""#), r#"{"x": 1"#);
        assert_eq!(
            asked(r#","arguments":{"b":1.0,"a":2,"b":3}"#),
            r#"{"b":1.0,"a":2,"b":3}"#
        );
    }

    #[test]
    fn arguments_that_are_left_out_are_none() {
        for text in [
            "",
            r#","arguments":null"#,
            r#","arguments":"""#,
            r#","arguments":" \n""#,
        ] {
            assert_eq!(asked(text), "{}", "{text}");
        }
    }

    #[test]
    fn arguments_that_are_no_object_stay_what_they_are() {
        assert_eq!(asked(r#","arguments":"null""#), "null");
        assert_eq!(asked(r#","arguments":[1]"#), "[1]");
        assert_eq!(asked(r#","arguments":3"#), "3");
    }

    #[test]
    fn content_is_a_string_or_parts() {
        assert_eq!(openai(r#"{"content":"hé"}"#).text.unwrap(), "hé");
        let parts = r#"{"content":[{"type":"text","text":"a"},{"type":"image"},{"type":"text","text":"b"}]}"#;
        assert_eq!(openai(parts).text.unwrap(), "ab");
        assert_eq!(
            openai(r#"{"content":null,"refusal":"no"}"#).text.unwrap(),
            "no"
        );
        assert_eq!(openai(r#"{"content":null}"#).text, None);
    }

    #[test]
    fn usage_and_the_served_model_are_read() {
        let body = r#"{"model":"m-2","choices":[{"message":{"content":"x"}}],
            "usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7,"cost":0.25,"other":{}}}"#;
        let reply = read_openai(body).unwrap();
        assert_eq!(reply.model.as_deref(), Some("m-2"));
        assert_eq!(
            (reply.usage.total, reply.usage.cost),
            (Some(7.0), Some(0.25))
        );
        let odd = r#"{"choices":[{"message":{"content":"x"}}],"usage":"many"}"#;
        assert_eq!(read_openai(odd).unwrap().usage, Usage::default());
    }

    #[test]
    fn what_is_wrong_has_a_code() {
        let code = |body: &str| read_openai(body).unwrap_err().code();
        assert_eq!(code("<html>502</html>"), "model_not_json");
        assert_eq!(code(""), "model_answer_cut");
        assert_eq!(
            code(r#"{"choices":[{"message":{"content":"abc"#),
            "model_answer_cut"
        );
        assert_eq!(code("{}"), "model_no_choices");
        assert_eq!(code(r#"{"choices":[]}"#), "model_no_choices");
        assert_eq!(code(r#"{"choices":null}"#), "model_no_choices");
        assert_eq!(code(r#"{"choices":[{}]}"#), "model_no_choices");
        assert_eq!(code("[1]"), "model_not_json");
        assert_eq!(code(r#"{"choices":3}"#), "model_answer_form");
        assert_eq!(
            code(r#"{"error":{"message":"busy","code":503}}"#),
            "model_refused"
        );
        assert_eq!(
            read_openai(r#"{"error":{"message":"busy","code":503}}"#)
                .unwrap_err()
                .facts()["status"],
            503
        );
        assert_eq!(read_anthropic("{}").unwrap_err().code(), "model_no_choices");
    }

    #[test]
    fn blocks_of_anthropic_become_one_reply() {
        let body = r#"{"model":"c","stop_reason":"tool_use","usage":{"input_tokens":3,"cache_read_input_tokens":10,"output_tokens":4},
            "content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"I look."},
            {"type":"tool_use","id":"t1","name":"f","input":{"n":12345678901234567890,"n":2}},
            {"type":"tool_use","id":"t1","name":"g","input":{}}]}"#;
        let reply = read_anthropic(body).unwrap();
        assert_eq!(reply.text.as_deref(), Some("I look."));
        assert_eq!(
            reply.calls[0].arguments,
            r#"{"n":12345678901234567890,"n":2}"#
        );
        assert_eq!(reply.calls[1].name, "g");
        assert_eq!(
            reply.thinking.as_deref(),
            Some(r#"[{"type":"thinking","thinking":"hm","signature":"s"}]"#)
        );
        assert_eq!(
            (reply.usage.input, reply.usage.output),
            (Some(13.0), Some(4.0))
        );
    }

    #[test]
    fn every_prefix_of_an_answer_is_an_error() {
        let body = r#"{"choices":[{"message":{"content":"a","tool_calls":[{"id":"é","function":{"name":"f","arguments":"{}"}}]}}]}"#;
        for (end, _) in body.char_indices() {
            assert!(read_openai(&body[..end]).is_err(), "{end}");
        }
    }
}
