"""Windows, rates and long lists of labels: post-processing of what was released, for whoever may read."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request, Response

from evertally.errors import ConfigurationError
from evertally.runtime.windows import Question
from evertally.runtime.windows.listing import Listing
from evertally.runtime.windows.question import asked_for
from evertally.service import answers
from evertally.service.answers import problems
from evertally.service.pages import MEDIA_TYPES, Format
from evertally.service.parts import Parts
from evertally.service.problems import Refused
from evertally.service.routes_read import Tick
from evertally.service.windows import WindowPages

_MOST_LABELS = 500  # in one request
_ALSO: dict[str, Any] = {
    "text/csv": {"schema": {"type": "string"}},
    "application/vnd.apache.arrow.stream": {"schema": {"type": "string", "format": "binary"}},
}
_WINDOWS: dict[str, Any] = {
    "model": answers.WindowsAnswer,
    "description": "Full windows, oldest first.",
    "content": _ALSO,
}

Name = Annotated[str, Query(max_length=64, description="The query.")]
Window = Annotated[
    str | None,
    Query(
        max_length=16, description='A length such as "7d", a number of ticks, or "total". Default: that of the spec.'
    ),
]
Labels = Annotated[
    list[Annotated[str, Query(max_length=1000)]] | None,
    Query(max_length=_MOST_LABELS, description="Only these labels. Default: all, or the 50 largest."),
]

Per = Annotated[
    str | None,
    Query(
        max_length=16,
        description='Counts as a rate, per "1d"; "": as they are. Default: that of the spec; with a window: none.',
    ),
]


async def _refuse_unknown(request: Request) -> None:
    """A misspelt parameter would be an answer to another question."""
    known = [parameter.alias for parameter in request.scope["route"].dependant.query_params]
    if not set(request.query_params) <= set(known):
        raise Refused(400, f"there are no other parameters than {', '.join(known)}")
    given = [name for name, _ in request.query_params.multi_items() if name != "label"]
    if len(set(given)) < len(given):
        raise Refused(400, "label alone may be given more than once")


def window_routes(parts: Parts) -> APIRouter:
    router = APIRouter(
        tags=["read"],
        dependencies=[Depends(parts.doorman.door("read")), Depends(_refuse_unknown)],
        responses=problems(401, 403, 429),
    )
    spec, pump = parts.spec, parts.pump
    pages = WindowPages(spec, parts.windows)
    words = {query.name: query.words for query in spec.queries}

    def ticks_of(query: str, window: str | None = None, per: str | None = None) -> tuple[int | None, int | None]:
        """Window and rate in ticks."""
        if query not in words:
            raise Refused(404, "the stream has no query of that name")
        try:
            return asked_for(spec.clock, words[query], window, per)
        except ConfigurationError as error:
            raise Refused(400, str(error)) from None

    @router.get("/v1/windows", response_class=Response, responses={200: _WINDOWS, **problems(400, 404, 503)})
    async def windows(
        query: Name,
        window: Window = None,
        first: Annotated[Tick, Query(alias="from", description="No window begins before the end of this tick.")] = None,
        last: Annotated[Tick, Query(alias="to", description="The last window ends here. Default: the newest.")] = None,
        every: Annotated[
            int | None, Query(ge=1, le=2**31, description="Ticks between the ends of windows. Default: the window.")
        ] = None,
        label: Labels = None,
        per: Per = None,
        points: Annotated[int | None, Query(ge=1, le=10_000, description="Thins evenly to at most so many.")] = None,
        format: Format = "json",
    ) -> Response:
        """What happened between releases, with its exact error, and the change against the window before.

        Differences of what was released: reading them costs no privacy. Windows whose ends are not kept any more are
        left out.
        """
        ticks, rate = ticks_of(query, window, per)
        question = Question(
            query=query,
            window=ticks,
            first=first or 0,
            last=last,
            every=every,
            labels=None if label is None else tuple(dict.fromkeys(label)),
            per=rate,
            points=points,
        )
        published = pump.published
        made = await parts.workers.read(lambda: pages.page(question, published, format))
        return Response(made, media_type=MEDIA_TYPES[format])

    @router.get("/v1/labels", response_model=answers.LabelsAnswer, responses=problems(400, 404, 503))
    async def labels(
        query: Name,
        window: Window = None,
        last: Annotated[Tick, Query(alias="to", description="Where the window ends. Default: the newest.")] = None,
        search: Annotated[str, Query(max_length=200, description="Part of a label, in any case.")] = "",
        sort: Annotated[Literal["value", "name"], Query()] = "value",
        offset: Annotated[int, Query(ge=0, le=2**31)] = 0,
        limit: Annotated[int, Query(ge=1, le=1000)] = 50,
        per: Per = None,
    ) -> Response:
        """The labels of a window, the largest first: values, the places that the noise leaves open, ties."""
        ticks, rate = ticks_of(query, window, per)
        asked = Listing(query, ticks, last, search, sort, offset, limit, per=rate)
        published = pump.published
        made = await parts.workers.read(lambda: pages.labels(asked, published))
        return Response(made, media_type=MEDIA_TYPES["json"])

    @router.get("/v1/exactness", response_model=answers.ExactnessAnswer, responses=problems(400, 404, 503))
    async def exactness(query: Name) -> Response:
        """How exact windows are, by their length: known before any data, for the error does not depend on it."""
        ticks_of(query)
        made = await parts.workers.read(lambda: pages.exactness(query))
        return Response(made, media_type=MEDIA_TYPES["json"])

    return router
