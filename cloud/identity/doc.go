// Package identity is the family of slices about people, ownership and rights: accounts of people (account, mail), whose a robot is (owner,
// consent), and credentials with which a robot acts for its owner (token, sts).
package identity
