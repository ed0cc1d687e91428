module pbuild

go 1.25.0
