n=0
failed=0
check() { # description, want, got
    n=$((n + 1))
    if [ "$2" = "$3" ]; then echo "ok $n - $1"; else echo "not ok $n - $1"; failed=1; fi
}
check "equal numbers" 2 "$(sh max.sh 2 2)"
check "the larger comes second" 3 "$(sh max.sh 2 3)"
echo "1..$n"
exit $failed
