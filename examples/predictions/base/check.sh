sh greet.sh world | grep -q Hello
