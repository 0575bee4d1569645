package tokenapi_test

import (
	"testing"

	"google.golang.org/grpc/codes"

	"kennel/infra/pg/pgtest"
)

// TestFullDisk: while the database takes no writes, an original robot is told Unavailable, which it asks again after, and keeps the token that it has; later
// everything works with the same token (issue 34, must hold 1).
func TestFullDisk(t *testing.T) {
	h, _, r := associated(t)
	ctx := t.Context()
	had := r.Token
	for _, code := range []string{pgtest.DiskFull, "58030"} {
		end := pgtest.Refuse(t, h.Pool, code)
		want(t, code+": refresh", r.RefreshJWT(ctx), codes.Unavailable)
		want(t, code+": associate", r.Associate(ctx, h.Sessions.Issue(anna)), codes.Unavailable)
		_, err := r.Reassociate(ctx, h.Sessions.Issue(anna), "phone 2", "companion-app")
		want(t, code+": reassociate", err, codes.Unavailable)
		want(t, code+": secondary", r.Secondary(ctx, h.Sessions.Issue(anna), "laptop", "SDK"), codes.Unavailable)
		want(t, code+": disassociate", r.Disassociate(ctx), codes.Unavailable)
		if r.Token != had {
			t.Errorf("%s: the robot has another token", code)
		}
		end()
	}
	ok(t, "refresh afterwards", r.RefreshJWT(ctx))
	ok(t, "disassociate afterwards", r.Disassociate(ctx))
}
