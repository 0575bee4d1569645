// Package identity tests who a robot and its owner are to the house: certificates, tokens, sessions and ownership, also of original robots.
package identity
