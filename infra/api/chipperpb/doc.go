// Package chipperpb is the published speech service of the original robots (peer facts, section 6): chipper.proto and what protoc makes of
// it. What answers it is in speech/chipperapi.
package chipperpb

//go:generate sh -c "protoc --plugin=protoc-gen-go=$(go tool -n protoc-gen-go) --plugin=protoc-gen-go-grpc=$(go tool -n protoc-gen-go-grpc) --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative chipper.proto"
