// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench

/** The time of a request, in milliseconds of the same clock. */
final case class Interval(begun: Long, ended: Long)

object SerialRequests {

  /** The largest number of these requests that followed one another, each begun after the end of the one before. */
  def of(requests: Seq[Interval]): Int =
    requests.sortBy(_.ended).foldLeft((0, Long.MinValue)) { case ((count, free), request) =>
      if (request.begun >= free) (count + 1, request.ended) else (count, free)
    }._1
}
