// Package docstest proves that robot and cloud reach agreement: the robot's documents (edge/agent/docs) against the cloud's rules (jdocs)
// over a real Postgres, through the bytes of real requests and answers, some of which are lost. It holds only tests.
package docstest
