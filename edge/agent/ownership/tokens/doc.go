// Package tokens keeps the tokens with which a robot acts for its owner and recognises the owner's apps.
//
//	PERS/token/token.jwt               the access token (JWT), as the cloud signed it: the robot may act for its owner
//	data/vic-gateway/token-hashes.json the hashes of client tokens: the apps that may talk to the robot (the document vic.AppTokens)
//
// The access token is refreshed 3 hours before it ends and whenever a server refused it. A user
// session from the owner's app is exchanged for a client token. The token is sent to the app once
// and stored nowhere; its hash comes back with the document. The cloud's document is authoritative:
// a token that is no longer in it gives no access. Without a cloud the last known document applies
// (VEC-AUTH-05..07, 11, 12, part of VEC-AUTH-08; VEC-TOK-05; peer facts, sections 1 and 2).
package tokens
