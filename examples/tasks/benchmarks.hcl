# Makefile-style tasks: run in the workspace directory, in place, only when an input, the command or the runtime changed.

locals {
  chapters = { for f in fileset(".", "chapters/*.txt") : trimsuffix(basename(f), ".txt") => f }
}

runtime "sh" {
  host {}
  probe = ["uname", "-sm"]
}

# One task a chapter: they run in parallel.
task "count" {
  for_each = local.chapters
  runtime  = runtime.sh
  command  = ["sh", "-c", "wc -w < ${each.value} > out/${each.key}.words"]
  inputs   = [each.value]
  outputs  = ["out/${each.key}.words"]
}

# Keyed on what the counts came out as: a rewording that keeps the number of words does not run it again.
task "total" {
  runtime    = runtime.sh
  command    = ["sh", "-c", "cat out/*.words | awk '{ n += $1 } END { print n }' > out/total"]
  depends_on = [task.count]
  outputs    = ["out/total"]
}
