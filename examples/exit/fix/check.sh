test "$(sh greet.sh world)" = "Hello, world"
