package gateway_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"kennel/infra/api/robotpb"
	"kennel/infra/mdns"
	"kennel/infra/testwait"
)

// TestAnnounced: a gateway that is for the network has the robot's name there.
func TestAnnounced(t *testing.T) {
	d := newDeskAt(t, "0.0.0.0:0")
	testwait.Until(t, patience, "its name", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := mdns.Lookup(ctx, strings.ToLower(d.conf.ServerName)+".local")
		return err
	})
}

// TestOrderReports: who looks hears the orders of all programs, as they began and how they ended.
func TestOrderReports(t *testing.T) {
	d := newDesk(t)
	r := d.dial(t)
	ctx, cancel := context.WithTimeout(as("look"), patience)
	defer cancel()
	reports, err := r.Orders(ctx, &robotpb.OrdersRequest{})
	if err != nil {
		t.Fatal(err)
	}
	hear := func() *robotpb.OrderReport {
		t.Helper()
		for {
			m, err := reports.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if m.Order != 0 {
				return m
			}
		}
	}
	if m, err := reports.Recv(); err != nil || m.Order != 0 {
		t.Fatalf("before an order: %v, %v", m, err)
	}
	want := &robotpb.Statement{Name: "robot.go", What: &robotpb.Statement_Call{Call: &robotpb.List{Items: []*robotpb.Value{{Kind: &robotpb.Value_Number{Number: 0.2}}}}},
		Manner: &robotpb.Statement_TimeS{TimeS: 2.5}}
	order := &robotpb.OrderRequest{Steps: []*robotpb.Step{{Statements: []*robotpb.Statement{want}}}, ForMs: 3000}
	call, give := context.WithCancel(as("other"))
	defer give()
	if _, err := r.Order(call, order); err != nil {
		t.Fatal(err)
	}
	began := hear()
	if began.Program != "fighter" || began.ForMs != 3000 || len(began.Steps) != 1 || !proto.Equal(began.Steps[0].Statements[0], want) || began.Ended != nil || began.AtUs <= 0 {
		t.Errorf("began: %v", began)
	}
	give()
	ended := hear()
	if ended.Order != began.Order || ended.Seq != began.Seq+1 || len(ended.Steps) != 0 || ended.Ended.GetOutcome() == "" || ended.Ended.Outcome == "done" || ended.AtUs < began.AtUs {
		t.Errorf("ended: %v after %v", ended, began)
	}
	if _, body := d.post(t, "all", "do", `{"text":"robot.go(0.1) headPitch"}`); !strings.Contains(body, "invalid") {
		t.Errorf("half a line: %s", body)
	}
	d.forget("look")
	for err = nil; err == nil; {
		_, err = reports.Recv()
	}
	if status.Code(err) != codes.Unauthenticated {
		t.Errorf("a token that is revoked: %v", err)
	}
}
