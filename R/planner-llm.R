#' Let a chat model plan
#'
#' Turns a chat model into a planner for [agent()]: it is shown the goal, the tools and
#' what came of earlier calls, and its answer becomes [decide_act()], with one call or
#' several, or [decide_finish()] with its text.
#'
#' The conversation is made from the state alone: the goal, and for each step the calls
#' and what came of them. So a run that was paused, killed or moved to another machine
#' goes on with the same conversation. Every call is answered exactly once, also the
#' refused ones, under an id of this package's: those of an endpoint may repeat.
#'
#' A call that cannot be read, that names no known tool or does not fit its schema is
#' no error of the run: it is answered with a text the model can act on
#' (`INVALID ARGUMENTS: ...`). The text of arguments goes to the tool as it came. A
#' model that does the same for ever is stopped by the limits of the run; there is no
#' other guess about loops.
#'
#' @section What goes wrong:
#' When the endpoint fails (see [model_openai()]), the error reaches whoever called
#' [run_agent()]. The run is saved before; the error has its `run_id`, and
#' `resume_run(agent, run_id)` asks again. A model that answers with nothing, or with a
#' text that was cut at its token limit, ends the run `failed` (`planner_failed`).
#'
#' @section What it uses:
#' Tokens are those the endpoint reports, all of them, those read from a cache too. Where
#' it reports none, and the run has a limit of tokens, they are counted high: one for
#' each 3 bytes sent or received. Cost is what the endpoint reports, or tokens at
#' `price`. A run with a cost limit and neither is an error before anything is asked for
#' twice.
#'
#' @param model A function of `messages` and `tools` that returns an assistant message,
#'   in the form of OpenAI's chat API: made by [model_openai()] or [model_anthropic()], or
#'   your own. A message is a list with `role`, `content`, and `tool_calls`, each with
#'   `function$name` and `function$arguments` (JSON text, or a named list). It may have
#'   `usage` (`total_tokens`, or `prompt_tokens` and `completion_tokens`; `cost`),
#'   `model`, `finish_reason`, and `waited_s`: seconds that were not work.
#' @param instructions A text that the model is given first, or `NULL`.
#' @param ... Must be empty.
#' @param price The price of a million tokens, `c(input = , output = )`, or `NULL`.
#' @param max_parallel The most calls that are shown to the model as one message:
#'   endpoints refuse more than 128. A model that asks for 200 at once sees them as two
#'   messages; none is left out.
#' @returns A planner: a function of `state` and `tools`.
#' @seealso [agent()], [model_openai()]
#' @examples
#' # A model of our own that needs no network: it asks once, then answers.
#' model <- function(messages, tools) {
#'   last <- messages[[length(messages)]]
#'   if (last$role == "tool") return(list(role = "assistant", content = last$content))
#'   list(role = "assistant", tool_calls = list(list(
#'     id = "1", type = "function",
#'     `function` = list(name = "lookup", arguments = '{"topic": "spans"}')
#'   )))
#' }
#' lookup <- agent_tool(function(topic) paste(topic, "are half open."), "lookup",
#'   "The page on a topic.", parameters = list(topic = list(type = "string"))
#' )
#' run <- run_agent(agent(lookup, planner_llm(model)), "What are spans?")
#' run$answer
#' @export
planner_llm <- function(model, instructions = NULL, ..., price = NULL, max_parallel = 128) {
  check_function(model)
  check_string(instructions, null = TRUE)
  check_dots(...)
  check_price(price)
  check_count(max_parallel, min = 1, infinite = FALSE)
  talk <- new.env(parent = emptyenv())
  planner <- function(state, tools) {
    messages <- conversation(talk, state, instructions, max_parallel)
    message <- ask_model(model, messages, offered_tools(talk, tools))
    decision_of(message, used_by(message, price, state$left, messages))
  }
  structure(planner, class = c("warrant_planner", "function"))
}

check_price <- function(price, call = caller_env()) {
  if (is.null(price)) return(invisible())
  good <- is.numeric(price) && length(price) == 2L && all(is.finite(price) & price >= 0) &&
    setequal(names(price), c("input", "output"))
  if (!good) stop_type(price, "price", "c(input = <number>, output = <number>) or NULL", call)
}

# ---- from state to messages --------------------------------------------------------

# What was said so far. Only steps that are new since last time are written; when the
# state is of another run, or went another way, all of them.
conversation <- function(talk, state, instructions, max_parallel) {
  old <- length(talk$steps)
  same <- identical(talk$run_id, state$run_id) && identical(talk$goal, state$goal) &&
    old <= length(state$steps) && identical(talk$steps, state$steps[seq_len(old)])
  if (!same) {
    old <- 0L
    talk$run_id <- state$run_id
    talk$goal <- state$goal
    talk$messages <- opening(state$goal, instructions)
  }
  new <- state$steps[seq_along(state$steps) > old]
  talk$messages <- c(talk$messages, unlist(lapply(new, step_messages, max_parallel), FALSE))
  talk$steps <- state$steps
  talk$messages
}

opening <- function(goal, instructions) {
  c(
    if (!is.null(instructions)) list(list(role = "system", content = instructions)),
    list(list(role = "user", content = as_text(goal)))
  )
}

step_messages <- function(step, max_parallel) {
  if (step$decision == "finish") {
    return(list(
      list(role = "assistant", content = as_text(step$answer)),
      list(role = "user", content = paste(step$error, "Go on, and answer when it is right."))
    ))
  }
  ids <- sprintf("c%04d%04d", as.integer(step$step), seq_along(step$actions))
  chunks <- split(seq_along(ids), (seq_along(ids) - 1L) %/% max_parallel)
  messages <- lapply(unname(chunks), function(chunk) {
    asked <- list(role = "assistant", content = NULL)
    first <- chunk[[1]] == 1L
    asked["content"] <- list(if (first) step$note$text)
    asked$tool_calls <- lapply(chunk, function(i) {
      asked_call(ids[[i]], step$actions[[i]], step$note$extra[[as.character(i)]])
    })
    if (first && !is.null(step$note$thinking)) {
      asked$thinking <- structure(step$note$thinking, class = "json")
    }
    c(list(asked), lapply(chunk, function(i) answered_call(ids[[i]], step$actions[[i]])))
  })
  unlist(messages, FALSE)
}

# A call as the model asked for it, in a form that every endpoint takes back: a name
# it allows, and an object.
asked_call <- function(id, action, extra) {
  name <- substr(gsub("[^A-Za-z0-9_-]", "_", action$tool), 1L, 64L)
  arguments <- action$asked
  if (!is.character(arguments)) arguments <- to_json(action$arguments)
  if (!startsWith(arguments, "{")) arguments <- "{}"
  c(
    list(
      id = id, type = "function",
      `function` = list(name = if (nzchar(name)) name else "unnamed", arguments = arguments)
    ),
    if (!is.null(extra)) list(extra_content = structure(extra, class = "json"))
  )
}

answered_call <- function(id, action) {
  executed <- identical(action$outcome, "executed")
  text <- if (!executed) {
    as_text(action$error)
  } else if (is.character(action$shown)) {
    action$shown
  } else {
    as_text(action$result)
  }
  notes <- c(
    if (!is.null(action$edited_by)) {
      paste0("(A person changed the arguments to ", to_json(action$arguments), ".)")
    },
    unlist(action$warnings)
  )
  message <- list(
    role = "tool", tool_call_id = id, content = paste(c(notes, text), collapse = "\n")
  )
  if (!executed) message$is_error <- TRUE
  message
}

# What a model is shown of a value: text as it is, anything else as JSON.
as_text <- function(x) {
  if (is.null(x)) return("")
  if (is.character(x) && length(x) == 1L && !is.na(x) && !is.object(x)) x else to_json(x)
}

offered_tools <- function(talk, tools) {
  if (!identical(talk$cards, tools)) {
    talk$offered <- lapply(unname(tools), function(tool) {
      list(
        type = "function",
        `function` = list(
          name = tool$name, description = tool$description, parameters = structure(unwrap_core(rs_chat_schema(tool$schema)), class = "json")
        )
      )
    })
    talk$cards <- tools
  }
  talk$offered
}

# ---- from a message to a decision --------------------------------------------------

ask_model <- function(model, messages, tools) {
  message <- tryCatch(model(messages, tools), warrant_error = function(e) {
    note_waiting(e$waited_s)
    rlang::cnd_signal(e)
  })
  if (is.list(message) && is.list(message$choices) && length(message$choices)) {
    message <- c(message$choices[[1]]$message, message[names(message) %in% c("usage", "model")])
  }
  good <- is.list(message) && !is.null(names(message)) &&
    (is.null(message$content) || is.character(message$content) || is.list(message$content)) &&
    (is.null(message$tool_calls) || is.list(message$tool_calls))
  if (!good) {
    stop_warrant(
      c("A model must return an assistant message: a list with `content` or `tool_calls`.",
        x = paste0("Found ", friendly(message), ".")),
      "model", code = "model_answer_form", call = quote(model())
    )
  }
  note_waiting(message$waited_s)
  message
}

note_waiting <- function(seconds) {
  if (is.numeric(seconds) && length(seconds) == 1L && is.finite(seconds) && seconds > 0) {
    the$waited_s <- the$waited_s + seconds
  }
}

decision_of <- function(message, usage) {
  text <- said(message$content)
  if (length(message$tool_calls)) {
    actions <- lapply(message$tool_calls, proposed_call)
    return(decide_act(actions, usage = usage, note = note_of(message, text)))
  }
  cut <- isTRUE(message$finish_reason %in% c("length", "max_tokens"))
  if (cut || !nzchar(trimws(text))) {
    what <- if (cut) "its text was cut at the token limit." else "it has neither text nor a call."
    stop_warrant(
      c("The answer of the model cannot be used.", x = paste("As it came,", what)),
      "model", code = if (cut) "model_answer_cut" else "model_answer_empty",
      call = quote(model())
    )
  }
  decide_finish(text, usage = usage, note = note_of(message))
}

# What is read is what is there; whether it will do, the gates of the run say.
proposed_call <- function(call) {
  about <- if (is.list(call)) call$`function`
  name <- if (is.list(about) && is.character(about$name) && length(about$name) == 1L) about$name
  arguments <- if (is.list(about)) about$arguments
  if (is.null(arguments)) {
    arguments <- "{}"
  } else if (is.character(arguments) && length(arguments) == 1L && !is.na(arguments)) {
    arguments <- if (nzchar(trimws(arguments))) unclass(arguments)[[1]] else "{}"
  } else if (!is.list(arguments) || length(arguments) && is.null(names(arguments))) {
    arguments <- to_json(arguments)
  }
  list(tool = if (is.null(name) || !nzchar(name) || is.na(name)) "(no name)" else name, arguments = arguments)
}

# What the conversation needs again and the decision does not say.
note_of <- function(message, text = "") {
  calls <- as.list(message$tool_calls)
  names(calls) <- seq_along(calls)
  extra <- lapply(calls, function(call) {
    if (is.list(call) && !is.null(call$extra_content)) as.character(to_json(call$extra_content))
  })
  extra <- Filter(Negate(is.null), extra)
  note <- list(
    text = if (nzchar(text)) text,
    thinking = if (!is.null(message$thinking)) to_json(message$thinking),
    extra = if (length(extra)) extra,
    model = if (is.character(message$model)) message$model[[1]],
    finish_reason = if (is.character(message$finish_reason)) message$finish_reason[[1]]
  )
  note <- Filter(Negate(is.null), note)
  if (length(note)) note
}

# ---- what it used ------------------------------------------------------------------

stop_price <- function() {
  stop_warrant(
    c("A run with a cost limit needs the price of its model.",
      i = "Give `price = c(input = , output = )` to planner_llm(), or `cost = Inf` to agent_limits()."),
    "model", code = "model_price_unknown", resumable = TRUE, call = quote(planner_llm())
  )
}

used_by <- function(message, price, left, messages) {
  usage <- if (is.list(message$usage)) message$usage else as.list(message$usage)
  number <- function(name) {
    x <- usage[[name]]
    if (is.numeric(x) && length(x) == 1L && is.finite(x) && x >= 0) x
  }
  input <- number("prompt_tokens")
  output <- number("completion_tokens")
  total <- number("total_tokens")
  limited <- is.numeric(left$tokens) && is.finite(left$tokens)
  if (is.null(total) && !is.null(input) && !is.null(output)) total <- input + output
  if (is.null(total) && (limited || !is.null(price))) {
    input <- ceiling(sum(vapply(messages, bytes_of, 0)) / 3)
    output <- ceiling(bytes_of(message) / 3)
    total <- input + output
  }
  cost <- number("cost")
  if (is.null(cost) && !is.null(price)) {
    if (is.null(input) || is.null(output)) cost <- total * max(price) / 1e6
    else cost <- (input * price[["input"]] + output * price[["output"]]) / 1e6
  }
  if (is.null(cost) && is.numeric(left$cost) && is.finite(left$cost)) stop_price()
  list(tokens = ceiling(if (is.null(total)) 0 else total), cost = if (is.null(cost)) 0 else cost)
}

# What identifies a planner: of one that asks a model, what the model is and is told.
planner_facts <- function(planner) {
  if (!inherits(planner, "warrant_planner")) return(function_facts(planner))
  about <- environment(planner)
  list(
    kind = "model", instructions = about$instructions, model = model_facts(about$model),
    price = if (!is.null(about$price)) as.list(about$price[c("input", "output")]),
    max_parallel = about$max_parallel
  )
}

bytes_of <- function(message) {
  calls <- lapply(message$tool_calls, function(call) call$`function`)
  sum(nchar(as.character(unlist(list(message$content, calls))), "bytes"))
}

#' @export
print.warrant_planner <- function(x, ...) {
  about <- environment(x)
  model <- about$model
  writeLines(c(
    "<warrant_planner> a chat model",
    paste0("* model: ", if (inherits(model, "warrant_model")) environment(model)$endpoint$model else "a function"),
    if (!is.null(about$instructions)) paste0("* instructions: ", one_line(about$instructions))
  ))
  invisible(x)
}
