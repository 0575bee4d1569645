// Package vectorpb is the interface that programs for the original Vector speak: vector.proto, with the published package, names and numbers
// (VEC-TRN-01; peer facts, section 2), and what protoc makes of it. The robot's side is edge/vectorsdk.
package vectorpb

//go:generate sh -c "protoc --plugin=protoc-gen-go=$(go tool -n protoc-gen-go) --plugin=protoc-gen-go-grpc=$(go tool -n protoc-gen-go-grpc) --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative vector.proto"
