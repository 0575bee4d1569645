// Package deploy tests the ways to start a house: by one command, by compose.yaml, by the systemd units, beside parts that run already, and from a backup.
package deploy
