// Package ctl is kennelctl, the command line of operators and owners. It uses only the public HTTPS API, so another program can do whatever
// kennelctl can. Requests and answers are those of package client, which is generated from the description of the API.
//
// kennelctl finds the cloud and the caller's token in this order: -onebox DIR reads the one-machine mode's run/ready.json and the token file
// that it names; the environment's KENNEL_SERVER and KENNEL_TOKEN_FILE; the session that `kennelctl login` kept in the user's configuration
// folder, readable by this user alone. A token is sent only to the server that gave it.
//
//	ctl.go      the command tree             ask.go      commands that ask the cloud, tables, completion
//	client.go   connection, errors, streams  session.go  where and as whom
//	declared.go commands that operations declare (infra/op.Command)    drawing.go  their tables
//	files.go    downloads and uploads
//	the others hold commands that ask several operations, or that keep more than one answer: robots.go, bulk.go, login.go, ...
package ctl
