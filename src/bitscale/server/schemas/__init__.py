"""The shapes of requests and answers: what OpenAPI tells, and what is refused with 422 before anything is done."""
