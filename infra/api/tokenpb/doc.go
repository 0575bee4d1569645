// Package tokenpb is the published token service of the original robots (VEC-TOK-06; peer facts, section 6): token.proto and what protoc
// makes of it. The rules are in cloud/identity/token.
package tokenpb

//go:generate sh -c "protoc --plugin=protoc-gen-go=$(go tool -n protoc-gen-go) --plugin=protoc-gen-go-grpc=$(go tool -n protoc-gen-go-grpc) --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative token.proto"
