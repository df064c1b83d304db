#' Check that a store keeps its promises
#'
#' Runs the checks that our own stores pass against a store of yours. See [stores]
#' for what a store is to do.
#'
#' @param maker A function without arguments that gives a store. Each check calls
#'   it for a store of its own, and, in the second tier, calls it again in
#'   other R processes: there it must give a store that shares its runs with the first. It
#'   travels to them with the variables it refers to, so it must open its own
#'   connections.
#' @param tier `"one_process"` checks what one R process sees; `"several_processes"` adds
#'   what must hold between processes, and needs the package callr.
#' @returns A tibble with a row for each check: `tier`, `check`, `passed`, `message` (why it did
#'   not pass, else `NA`).
#' @examples
#' store_conformance(memory_store)
#'
#' dir <- tempfile()
#' checks <- store_conformance(\() file_store(dir))
#' all(checks$passed)
#' @export
store_conformance <- function(maker, tier = c("one_process", "several_processes")) {
  if (!is.function(maker)) {
    stop_warrant("`maker` must be a function that gives a store.", kind = "input", arg = "maker")
  }
  tier <- arg_match(tier)
  several <- tier == "several_processes"
  if (several) rlang::check_installed("callr", "to check a store between processes.")
  one <- lapply(names(conformance_one), function(name) {
    conformance_row("one_process", name, conformance_one[[name]], maker)
  })
  more <- if (several) {
    lapply(names(conformance_several), function(name) {
      conformance_row("several_processes", name, conformance_several[[name]], maker)
    })
  }
  do.call(rbind, c(one, more))
}

conformance_row <- function(tier, name, check, maker) {
  message <- tryCatch(
    {
      store <- maker()
      if (!is_store(store)) stop("`maker` did not give a store.")
      check(store, maker)
      NA_character_
    },
    error = function(e) conditionMessage(e)
  )
  tibble(tier = tier, check = name, passed = is.na(message), message = message)
}

holds <- function(condition, what) if (!isTRUE(condition)) stop(what, call. = FALSE)

raises <- function(expr, code) {
  class <- paste0("warrant_error_", code)
  got <- tryCatch({
    expr
    "no error"
  }, error = function(e) if (inherits(e, class)) class else class(e)[1])
  holds(got == class, sprintf("expected a %s, got %s", class, got))
}

# Runs of made-up records: real lines over a real chain.
sample_run <- function(n = 3L, run_id = unwrap_core(rs_random_hex())) {
  data <- sprintf("{\"step\":%d}", seq_len(n))
  sealed <- unwrap_core(
    rs_seal_lines(run_id, 0, "", rep("plan_started", n), data, 1, 1)
  )
  digest <- sub(".*,\"digest\":\"([0-9a-f]{64})\",\"event\".*", "\\1", sealed$lines)
  list(id = run_id, lines = sealed$lines, heads = c("", digest))
}

add_sample <- function(store, run, from, to, token, content = NULL, sync = FALSE) {
  store$append(
    run$id, run$lines[from:to], run$heads[from], run$heads[to + 1], content, token, sync
  )
}

conformance_one <- list(
  "lines come back as they were, in order" = function(store, maker) {
    run <- sample_run(5L)
    token <- store$lock(run$id)
    add_sample(store, run, 1, 2, token)
    add_sample(store, run, 3, 3, token, sync = TRUE)
    add_sample(store, run, 4, 5, token)
    store$unlock(token)
    holds(identical(store$read(run$id), run$lines), "other lines came back")
    holds(run$id %in% store$runs(), "runs() does not name the run")
  },
  "a run that is not there is named as such" = function(store, maker) {
    run <- sample_run()
    raises(store$read(run$id), "no_such_run")
    holds(!run$id %in% store$runs(), "runs() names a run without records")
    token <- store$lock(run$id)
    raises(add_sample(store, run, 2, 2, token), "no_such_run")
    holds(!run$id %in% store$runs(), "a refused append made a run")
    store$unlock(token)
  },
  "a stale head is refused and changes nothing" = function(store, maker) {
    run <- sample_run(4L)
    token <- store$lock(run$id)
    add_sample(store, run, 1, 3, token)
    raises(add_sample(store, run, 2, 2, token, c(ab = "1")), "stale_head")
    holds(identical(store$read(run$id), run$lines[1:3]), "the journal changed")
    add_sample(store, run, 4, 4, token)
    store$unlock(token)
    holds(identical(store$read(run$id), run$lines), "the journal cannot go on")
  },
  "a run id is used once" = function(store, maker) {
    run <- sample_run()
    token <- store$lock(run$id)
    add_sample(store, run, 1, 2, token)
    raises(add_sample(store, run, 1, 1, token), "run_exists")
    store$unlock(token)
    holds(identical(store$read(run$id), run$lines[1:2]), "the journal changed")
  },
  "content comes back byte for byte, and the first value stays" = function(store, maker) {
    run <- sample_run()
    token <- store$lock(run$id)
    odd <- "{\"a\":\"\u00e9\u2028 \U0001F600 '\\\"%s ? $1 \\\\n\"}"
    long <- paste0("\"", strrep("long ", 3e5), "\"")
    content <- c(key = strrep("0f", 32), ab12 = odd, cd34 = "null", "0123" = long)
    add_sample(store, run, 1, 1, token, content)
    add_sample(store, run, 2, 2, token, c(ab12 = "\"other\""))
    store$append(run$id, character(), run$heads[3], run$heads[3], c(ef56 = "1"), token)
    store$unlock(token)
    got <- store$get_content(run$id, c("cd34", "nothing", "ab12", "ef56", "0123"))
    want <- c(cd34 = "null", nothing = NA, ab12 = odd, ef56 = "1", "0123" = long)
    holds(identical(got, want), "other content came back")
    all <- store$get_content(run$id)
    holds(setequal(names(all), c("key", "ab12", "cd34", "ef56", "0123")), "content is missing")
    other <- sample_run()
    holds(is.na(store$get_content(other$id, "ab12")), "content shows in another run")
  },
  "a locked run has one owner" = function(store, maker) {
    run <- sample_run()
    token <- store$lock(run$id)
    raises(store$lock(run$id), "already_running")
    other <- store$lock(sample_run()$id)
    store$unlock(other)
    store$renew(token, 5)
    store$unlock(token)
    store$unlock(token)
    raises(add_sample(store, run, 1, 1, token), "not_owner")
    raises(add_sample(store, run, 1, 1, NULL), "not_owner")
    raises(store$renew(token), "not_owner")
    token <- store$lock(run$id)
    add_sample(store, run, 1, 1, token)
    store$unlock(token)
  },
  "a late owner changes no record; content that it brings is kept or refused" = function(store, maker) {
    run <- sample_run()
    late <- store$lock(run$id)
    add_sample(store, run, 1, 1, late)
    store$unlock(late)
    token <- store$lock(run$id)
    raises(add_sample(store, run, 2, 2, late), "not_owner")
    kept <- tryCatch({
      store$append(run$id, character(), run$heads[2], run$heads[2], c(ab12 = "1"), late)
      TRUE
    }, warrant_error_not_owner = function(e) FALSE)
    holds(identical(!is.na(store$get_content(run$id, "ab12")[[1]]), kept), "it was neither")
    add_sample(store, run, 2, 2, token)
    store$unlock(token)
    holds(identical(store$read(run$id), run$lines[1:2]), "the journal changed")
  },
  "an append costs the same however long the journal is" = function(store, maker) {
    run <- sample_run(400L)
    token <- store$lock(run$id)
    for (i in 1:400) add_sample(store, run, i, i, token)
    store$unlock(token)
    holds(identical(store$read(run$id), run$lines), "other lines came back")
  }
)

# Runs `each(store, run, ...)` in other R processes that make the store anew.
in_processes <- function(maker, each, args = list(list())) {
  # A fresh environment of the package's, so that only code and `maker` travel.
  work <- function(maker, each, args) {
    environment(each) <- asNamespace("warrant")
    do.call(each, c(list(maker()), args))
  }
  environment(work) <- globalenv()
  environment(each) <- globalenv()
  jobs <- lapply(args, function(a) callr::r_bg(work, list(maker, each, a), package = FALSE))
  on.exit(for (job in jobs) job$kill())
  lapply(jobs, function(job) {
    job$wait(120000)
    job$get_result()
  })
}

conformance_several <- list(
  "what one process wrote another reads" = function(store, maker) {
    run <- sample_run()
    token <- store$lock(run$id)
    add_sample(store, run, 1, 3, token, c(ab = "[1]"))
    store$unlock(token)
    read <- function(store, id) list(store$read(id), store$get_content(id, "ab"), store$runs())
    got <- in_processes(maker, read, list(list(run$id)))[[1]]
    holds(identical(got[[1]], run$lines), "other lines came back")
    holds(identical(unname(got[[2]]), "[1]"), "other content came back")
    holds(run$id %in% got[[3]], "runs() does not name the run")
  },
  "another process is told that the run is driven" = function(store, maker) {
    run <- sample_run()
    token <- store$lock(run$id)
    take <- function(store, id) {
      tryCatch({
        store$unlock(store$lock(id))
        "taken"
      }, warrant_error_already_running = function(e) "told")
    }
    holds(in_processes(maker, take, list(list(run$id)))[[1]] == "told", "the run was taken twice")
    store$unlock(token)
    holds(in_processes(maker, take, list(list(run$id)))[[1]] == "taken", "the run stayed locked")
  },
  "the death of an owner frees the run" = function(store, maker) {
    run <- sample_run()
    die <- function(store, id) {
      store$lock(id)
      tools::pskill(Sys.getpid(), tools::SIGKILL)
    }
    try(in_processes(maker, die, list(list(run$id))), silent = TRUE)
    token <- store$lock(run$id)
    add_sample(store, run, 1, 1, token)
    store$unlock(token)
  },
  "of many that write the same record one succeeds" = function(store, maker) {
    run <- sample_run()
    write <- function(store, run) {
      for (i in 1:200) {
        done <- tryCatch({
          token <- store$lock(run$id)
          on.exit(store$unlock(token))
          add_sample(store, run, 1, 1, token)
          "wrote"
        }, warrant_error_already_running = function(e) NULL,
        warrant_error_run_exists = function(e) "refused")
        if (!is.null(done)) return(done)
        Sys.sleep(0.01)
      }
      "gave up"
    }
    got <- unlist(in_processes(maker, write, rep(list(list(run)), 4)))
    holds(sum(got == "wrote") == 1, paste("outcomes:", paste(got, collapse = ", ")))
    holds(identical(store$read(run$id), run$lines[1]), "other lines came back")
  },
  "many that write runs of their own lose nothing" = function(store, maker) {
    write <- function(store, n) {
      run <- sample_run(n)
      token <- store$lock(run$id)
      for (i in seq_len(n)) add_sample(store, run, i, i, token)
      store$unlock(token)
      run
    }
    runs <- in_processes(maker, write, rep(list(list(40L)), 4))
    for (run in runs) holds(identical(store$read(run$id), run$lines), "lines were lost")
  }
)
