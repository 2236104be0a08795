// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.read

import scala.concurrent.{ExecutionContext, Future}

import sparkdstl.log.runtime.ProtocolRuntime
import sparkdstl.log.storage.ObjectTail

/**
 * Ranges with parts of several stores, fetched once for all stores of an executor; `disk` keeps copies, also of those that
 * were evicted from memory. Data files never change and names are never reused, so later runs can use cached ranges.
 */
final class SharedRanges(
    memory: MemoryCache[RangePlace, Array[Byte]],
    disk: Option[DiskCache],
    runtime: ProtocolRuntime
) {
  private implicit val executor: ExecutionContext = runtime.executor

  /** Returns the range from memory, from the local disk, or from `fetch`. */
  def get(place: RangePlace)(fetch: => Future[Array[Byte]]): Future[Array[Byte]] = memory.get(place) {
    disk.fold(fetch) {
      _.get(place)(fetch.map(bytes => Some(ObjectTail(bytes, place.range.length.toLong)))).map(_.get.bytes)
    }
  }

  def forget(place: RangePlace): Unit = {
    memory.forget(place)
    disk.foreach(_.forget(place))
  }
}
