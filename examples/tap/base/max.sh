if [ "$1" -lt "$2" ]; then echo "$1"; else echo "$1"; fi
