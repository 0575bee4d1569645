// Package ctl is kennelctl, the command line of operators. It speaks the public HTTPS API and nothing else, so that whatever it can do,
// a program of anyone can.
//
// Who it is to the cloud, in this order: -onebox DIR reads the one-machine mode's run/ready.json and the token file it names; the
// environment's KENNEL_SERVER and KENNEL_TOKEN_FILE; else the session that `kennelctl login` kept in the user's configuration folder,
// readable by this user alone. A token is sent only to the server that gave it.
//
//	ctl.go      the command tree      session.go  where and as whom      client.go  requests, errors, streams
//	robots.go   jdocs.go   commands.go  events.go  doctor.go   login.go               keyvalue.go  KEY=VALUE
package ctl
