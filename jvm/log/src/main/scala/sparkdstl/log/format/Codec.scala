// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.format

import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID

import scala.reflect.ClassTag

/** Encodes and decodes values of at least `minimumSize` bytes. Checks lengths and counts before it allocates memory. */
private[log] final class Codec[T](val minimumSize: Int)(val write: (ByteEncoder, T) => Unit)(
    val read: ByteDecoder => T
) {

  /** A codec of another type with the same bytes. */
  def as[U](to: T => U)(from: U => T): Codec[U] =
    new Codec[U](minimumSize)((out, value) => write(out, from(value)))(in => to(read(in)))

  def encode(value: T): Array[Byte] = {
    val out = new ByteEncoder
    write(out, value)
    out.result
  }

  /** Throws `IllegalArgumentException` unless the bytes are one value. */
  def decode(bytes: Array[Byte]): T = {
    val in = new ByteDecoder(ByteBuffer.wrap(bytes))
    val value = read(in)
    if (in.remaining > 0) throw new IllegalArgumentException(s"${in.remaining} bytes after the message")
    value
  }
}

private[log] object Codec {
  val byte: Codec[Int] = new Codec[Int](1)(_.byte(_))(_.byte())
  val boolean: Codec[Boolean] = byte.as(_ > 0)(if (_) 1 else 0)
  val fixed32: Codec[Int] = new Codec[Int](4)(_.fixed32(_))(_.fixed32())

  /** Not negative. */
  val number: Codec[Long] = new Codec[Long](1)(_.number(_))(_.number())

  /** Not negative. */
  val size: Codec[Int] = new Codec[Int](1)((out, value) => out.number(value.toLong))(_.int())
  val signed: Codec[Long] = new Codec[Long](1)(_.signed(_))(_.signed())
  val uuid: Codec[UUID] = new Codec[UUID](16)(_.uuid(_))(_.uuid())
  val bytes: Codec[Array[Byte]] = new Codec[Array[Byte]](1)(_.raw(_))(_.raw())

  /** Text that must be valid UTF-8. */
  val utf8: Codec[String] = new Codec[String](1)(_.text(_))(_.text())

  /** Text whose invalid characters are replaced. */
  val text: Codec[String] = bytes.as(new String(_, UTF_8))(_.getBytes(UTF_8))

  def option[T](of: Codec[T]): Codec[Option[T]] = new Codec[Option[T]](1)((out, value) => {
    boolean.write(out, value.nonEmpty)
    value.foreach(of.write(out, _))
  })(in => Option.when(boolean.read(in))(of.read(in)))

  def vector[T](of: Codec[T]): Codec[Vector[T]] = new Codec[Vector[T]](1)((out, values) => {
    out.number(values.size.toLong)
    values.foreach(of.write(out, _))
  })(in => in.many(of.minimumSize)(of.read(in)))

  def pair[A, B](a: Codec[A], b: Codec[B]): Codec[(A, B)] =
    new Codec[(A, B)](a.minimumSize + b.minimumSize)((out, value) => {
      a.write(out, value._1)
      b.write(out, value._2)
    })(in => (a.read(in), b.read(in)))

  def of2[A, B, T](a: Codec[A], b: Codec[B])(make: (A, B) => T)(fields: T => Option[(A, B)]): Codec[T] =
    pair(a, b).as(make.tupled)(fields(_).get)

  def of3[A, B, C, T](a: Codec[A], b: Codec[B], c: Codec[C])(make: (A, B, C) => T)(
      fields: T => Option[(A, B, C)]
  ): Codec[T] = pair(a, pair(b, c)).as { case (a, (b, c)) => make(a, b, c) } { value =>
    val (a, b, c) = fields(value).get
    (a, (b, c))
  }

  def of4[A, B, C, D, T](a: Codec[A], b: Codec[B], c: Codec[C], d: Codec[D])(make: (A, B, C, D) => T)(
      fields: T => Option[(A, B, C, D)]
  ): Codec[T] = pair(pair(a, b), pair(c, d)).as { case ((a, b), (c, d)) => make(a, b, c, d) } { value =>
    val (a, b, c, d) = fields(value).get
    ((a, b), (c, d))
  }

  /** A subtype, for [[oneOf]]. */
  final class Kind[T](val codec: Codec[T], tag: ClassTag[T]) {
    def is(value: Any): Boolean = tag.runtimeClass.isInstance(value)

    def write(out: ByteEncoder, value: Any): Unit = codec.write(out, value.asInstanceOf[T])
  }

  def kind[T](codec: Codec[T])(implicit tag: ClassTag[T]): Kind[T] = new Kind(codec, tag)

  /** The only value of its type. */
  def only[T](value: T)(implicit tag: ClassTag[T]): Kind[T] = kind(new Codec[T](0)((_, _) => ())(_ => value))

  /** Values of several types, each after a byte with the number of its type. */
  def oneOf[T](kinds: Kind[_ <: T]*): Codec[T] = new Codec[T](1)((out, value) => {
    val number = kinds.indexWhere(_.is(value))
    out.byte(number)
    kinds(number).write(out, value)
  })(in => {
    val number = in.byte()
    kinds.lift(number).getOrElse(throw new IllegalArgumentException(s"unknown message $number")).codec.read(in)
  })
}
