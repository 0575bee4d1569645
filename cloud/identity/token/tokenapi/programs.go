package tokenapi

import (
	"context"

	"kennel/cloud/identity/token"
	"kennel/infra/auth"
	"kennel/infra/op"
)

type (
	adding struct {
		robot
		Program token.NewProgram `body:""`
	}
	oneProgram struct {
		robot
		Program string `path:"program"`
	}
)

// programs returns the operations of owners on what may talk to their robots.
func (a api) programs() op.List {
	mine := func(route, summary string) op.Spec {
		return op.Spec{Route: route, Tag: "Own robots", Summary: summary, Roles: []auth.Role{auth.Owner}, Own: true, Strict: true}
	}
	return op.List{
		op.New(mine("GET /v1/my/robots/{thing}/programs", "List the programs and apps that may talk to your robot, with their rights and when their tokens expire.").With(
			op.Command{Use: "my programs list THING", Short: "List programs and apps that may talk to your robot",
				Table: "PROGRAM=.id; NAME=.client_name; KIND=.app_id; SINCE=.issued_at; RIGHTS=or .rights `all`; EXPIRES=or .expires_at `never`"}), a.apps),
		op.New(mine("POST /v1/my/robots/{thing}/programs", "Let a program drive your robot. The answer is the file by which it finds the robot; its token is shown this once.").With(
			op.Command{Use: "my programs add THING NAME -rights! -days=30", Short: "Let a program drive your robot, and print the file by which it reaches it",
				Long:    "Rights are look (read what the robot measures), talk (lights, sounds and speech), move, camera (pictures), settings and hear (its microphones). With -days 0 the token never expires.\nThe program reads the file that KENNEL_ROBOT names. Keep it secret: anyone who has it has these rights.",
				Example: "my programs add vic:00e20100 wanderer -rights look,move -o json > robot.json\nmy programs add vic:00e20100 logger -rights look -days 0 -o json > robot.json",
				Table:   "thing; address; name; token; certificate"}),
			func(ctx context.Context, r adding) (token.ProgramFile, error) {
				if err := r.Program.Check(); err != nil {
					return token.ProgramFile{}, err
				}
				if err := a.cfg.Audit(ctx, token.AuditProgram, string(r.Thing), r.Program.Detail()); err != nil {
					return token.ProgramFile{}, err
				}
				return a.svc.AddProgram(ctx, r.Thing, auth.CallerFrom(ctx).Account, r.Program)
			}),
		op.New(mine("DELETE /v1/my/robots/{thing}/programs/{program}", "Remove a program or an app. Your robot forgets it within seconds, or when it is online again.").With(
			op.Command{Use: "my programs revoke THING PROGRAM", Short: "Remove a program or an app from your robot", Says: "{{.PROGRAM}} may no longer talk to {{.THING}}"}),
			func(ctx context.Context, r oneProgram) (op.None, error) {
				return a.revokeApp(ctx, oneApp{r.robot, r.Program})
			}),
	}
}
