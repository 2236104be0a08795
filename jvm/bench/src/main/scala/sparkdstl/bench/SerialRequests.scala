// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench

/** A request, and its time in milliseconds of the same clock. */
final case class TimedRequest(what: String, begun: Long, ended: Long)

object SerialRequests {

  /** As many of these requests as followed one another, each begun after the end of the one before. */
  def of(requests: Seq[TimedRequest]): Vector[TimedRequest] =
    requests.sortBy(_.ended).foldLeft(Vector.empty[TimedRequest]) { (chain, request) =>
      if (chain.lastOption.forall(_.ended <= request.begun)) chain :+ request else chain
    }
}
