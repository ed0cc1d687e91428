echo "Hello, "
