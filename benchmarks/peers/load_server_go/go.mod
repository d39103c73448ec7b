module aioinformer/benchmarks/load-server

go 1.26.0
