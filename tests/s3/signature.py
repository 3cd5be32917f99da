"""Prints the signature of a presigned GET of a URL, as the library of AWS calculates it.

One of the S3 servers of the tests does not check signatures of the current version, and the other server does not check
the signatures of links.
"""

import sys
import urllib.parse

from botocore.auth import S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials


def signature(url, key, secret):
    parts = urllib.parse.urlsplit(url)
    asked = urllib.parse.parse_qsl(parts.query, keep_blank_values=True)
    given = dict(asked)
    query = urllib.parse.urlencode([pair for pair in asked if pair[0] != "X-Amz-Signature"],
                                   quote_via=urllib.parse.quote)
    _, _, region, *_ = given["X-Amz-Credential"].split("/")
    auth = S3SigV4QueryAuth(Credentials(key, secret), "s3", region, expires=int(given["X-Amz-Expires"]))
    request = AWSRequest("GET", urllib.parse.urlunsplit(parts._replace(query=query)))
    request.context["timestamp"] = given["X-Amz-Date"]
    return auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)


if __name__ == "__main__":
    print(signature(*sys.argv[1:4]))
