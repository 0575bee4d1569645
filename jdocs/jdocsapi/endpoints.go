// Package jdocsapi is documents over the wires: to people over HTTP (http.go), to our robots over MQTT requests (mqtt.go), to original robots
// over gRPC (grpc.go) and its published REST form (rest.go). What a caller may do is in jdocs.Robots and jdocs/people; the robot's end of
// MQTT is jdocs/jdocswire.
package jdocsapi

import (
	"context"
	"log/slog"
	"time"

	"github.com/go-kit/kit/endpoint"

	"kennel/infra/kit"
	"kennel/jdocs"
)

// timeout bounds one request of a robot.
const timeout = 10 * time.Second

// Requests of robots. The asker is set by the transport, from what it has proved.
type (
	readReq struct {
		by    jdocs.Asker
		items []jdocs.Item
	}
	writeReq struct {
		by   jdocs.Asker
		name jdocs.Name
		doc  jdocs.Doc
	}
	nameReq struct {
		by      jdocs.Asker
		name    jdocs.Name
		version uint64 // of a revision
	}
)

// endpoints are those that the transports of robots share.
type endpoints struct{ read, write, delete, revision endpoint.Endpoint }

func makeEndpoints(r jdocs.Robots, log *slog.Logger) endpoints {
	wrap := endpoint.Chain(kit.Recover(log), kit.Timeout(timeout))
	return endpoints{
		read: wrap(kit.Typed(func(ctx context.Context, req readReq) ([]jdocs.ReadResult, error) {
			return r.Read(ctx, req.by, req.items)
		})),
		write: wrap(kit.Typed(func(ctx context.Context, req writeReq) (jdocs.WriteResult, error) {
			return r.Write(ctx, req.by, req.name, req.doc)
		})),
		delete: wrap(kit.Typed(func(ctx context.Context, req nameReq) (uint64, error) {
			return r.Delete(ctx, req.by, req.name)
		})),
		revision: wrap(kit.Typed(func(ctx context.Context, req nameReq) (jdocs.Revision, error) {
			return r.Revision(ctx, req.by, req.name, req.version)
		})),
	}
}
