// Package jdocspb is the published document service of the original robots (VEC-JDS-01 to 04, 11; peer facts, section 6): jdocs.proto
// and what protoc makes of it. The rules are in jdocs.
package jdocspb

//go:generate sh -c "protoc --plugin=protoc-gen-go=$(go tool -n protoc-gen-go) --plugin=protoc-gen-go-grpc=$(go tool -n protoc-gen-go-grpc) --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative jdocs.proto"
